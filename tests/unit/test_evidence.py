"""Evidence is the line that proves it."""

from told import examined, text_of


def test_torchs_own_answer_is_quoted():
    results = examined(text_of("wsl-cuda-init-error2-8gpu.txt")).results
    finding = next(one for one in results if one.check == "torch/device-unavailable").findings[0]
    answer = finding.evidence[0].origin
    assert (answer.line, answer.quote) == (8, "Is CUDA available: False")
