PYTHON ?= python3
VENV ?= .venv-check
BIN = $(VENV)/bin
# The CPU build alone: the local version keeps pip from ever taking a build for an accelerator.
TORCH ?= torch==2.13.0+cpu
RAY ?= ray>=2.40

.PHONY: check format test docs device bench soak full clean

check: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/diag selftest
	$(BIN)/python docs/catalogue.py --check
	$(BIN)/python docs/coverage.py --check
	$(BIN)/python docs/outputs.py --check
	$(BIN)/python docs/faults.py --check
	$(BIN)/python docs/matrix.py --check
	$(BIN)/pytest -n auto --dist worksteal

test: $(VENV)/installed
	$(BIN)/pytest -n auto --dist worksteal

format: $(VENV)/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/installed
	$(BIN)/python docs/catalogue.py
	$(BIN)/python docs/coverage.py
	$(BIN)/python docs/outputs.py
	$(BIN)/python docs/faults.py
	$(BIN)/python docs/matrix.py

device: $(VENV)/installed
	$(BIN)/pytest tests/device

bench: $(VENV)/installed
	$(BIN)/python bench/quick_vs_collect_env.py
	$(BIN)/python bench/help_cpu.py
	$(BIN)/python bench/judge_thousand.py
	$(BIN)/python bench/matrix.py
	$(BIN)/python bench/scan.py
	$(BIN)/python bench/run.py

soak full: $(VENV)/installed
	DIAG_EXAMPLES=10000 $(BIN)/pytest -n auto --dist worksteal -k "fuzz or interrupted or spawn or faults or probes or contract or test_run"
	DIAG_EXAMPLES=10000 $(BIN)/pytest tests/cli/test_isolate.py
	DIAG_EXAMPLES=10000 $(BIN)/pytest tests/backend/test_detectors.py
	$(BIN)/python tests/backend/torches.py

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -e ".[dev]"
	$(BIN)/pip install -q "$(TORCH)" || echo "no CPU build of torch for this Python: tests that need it are skipped"
	$(BIN)/pip install -q "$(RAY)" || echo "no Ray for this Python: the test that needs it is skipped"
	touch $@

clean:
	rm -rf $(VENV) build dist
