import sys, tempfile
from pathlib import Path
from .box import run
from . import listed
from .tools import TOOLS
want = sys.argv[1:]
for f in listed.FAULTS:
    if f.soak or (want and not any(w in f.name for w in want)): continue
    with tempfile.TemporaryDirectory() as d:
        box = Path(d)
        r = run(f, box)
        print(f"== {f.name}: code {r.code} ({f.exit}) {r.seconds:.1f}s {r.mib}MiB left={r.left} written={r.written}")
        if r.err: print("   ERR", r.err[:1500])
        try:
            rep = r.report
        except Exception as e:
            print("   NO REPORT", e, r.out[:200]); continue
        for u in rep.facts.get("Unavailable", []):
            if u["what"] in f.unavailable or u["what"].split("/")[0] in ("nvidia-smi","torch","packages","nvml","site","dmesg","kernel"): print("   U", u["what"], u["how"], u["reason"][:150])
        print("   F", [(x.id, x.summary[:120]) for x in rep.findings], "I", rep.incomplete, "B", rep.broken)
