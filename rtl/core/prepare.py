"""Makes the sources of the HPU's core from its package: the files of CV32E40P, unchanged but for RV32A and what it tells.

The package stays as it is. Its files are copied to a build folder; five places of one of them are changed, so that the
core decodes atomic instructions, and tells which of them it executes, how large an access is, which instruction enters
the execute stage, and which one traps. Every file must be the one for which this was written, and every change must
find its place exactly once.
"""

import argparse
import hashlib
import sys
from importlib.metadata import version
from pathlib import Path

import pythondata_cpu_cv32e40p

PACKAGE = "pythondata-cpu-cv32e40p"
SUMS = Path(__file__).with_name("cv32e40p.sha256")
CORE = "rtl/cv32e40p_core.sv"

# What is replaced in CORE, by what.
CHANGES = [
    ("  localparam A_EXTENSION = 0;\n", "  localparam A_EXTENSION = 1;\n"),
    ("  logic [5:0] data_atop_o;  // atomic operation, only active if parameter `A_EXTENSION != 0`\n", ""),
    (
        "    output logic [31:0] data_wdata_o,\n    input  logic [31:0] data_rdata_i,\n",
        "    output logic [31:0] data_wdata_o,\n    output logic [ 5:0] data_atop_o,\n"
        "    output logic [ 1:0] data_type_o,  // 0 word, 1 half word, 2 and 3 byte\n"
        "    output logic        data_second_o,  // the second half of an access that crosses words\n"
        "    input  logic [31:0] data_rdata_i,\n",
    ),
    (
        "    output logic core_sleep_o\n);\n",
        "    output logic core_sleep_o,\n\n"
        "    // The instruction in decode, whether one has left it a cycle ago, and whether one traps instead, and why\n"
        "    output logic        retires_o,\n    output logic [31:0] pc_id_o,\n"
        "    output logic        traps_o,\n    output logic [ 5:0] cause_o\n);\n",
    ),
    (
        "  assign irq_sec_i = 1'b0;\n",
        "  assign irq_sec_i = 1'b0;\n  assign data_type_o = data_type_ex;\n"
        "  assign data_second_o = data_misaligned_ex;\n  assign retires_o = mhpmevent_minstret;\n"
        "  assign pc_id_o = pc_id;\n  assign traps_o = csr_save_cause;\n  assign cause_o = csr_cause;\n",
    ),
]


class PackageChangedError(Exception):
    """The package is not the one for which the changes were written."""


def changed(text: str) -> str:
    """Make all changes in the core's source.

    Raises:
        PackageChangedError: When a change does not find its place exactly once.

    """
    for old, new in CHANGES:
        found = text.count(old)
        if found != 1:
            raise PackageChangedError(f"{CORE}: {old.strip()!r} is there {found} times, not once")
        text = text.replace(old, new)
    return text


def prepare(source: Path, target: Path, sums: str) -> list[Path]:
    """Copy the files that `sums` lists from `source` to `target`, in the order in which a compiler needs them.

    Raises:
        PackageChangedError: When a file is not the one whose sum is listed.

    """
    written = []
    for line in sums.splitlines():
        expected, name = line.split()
        content = (source / name).read_bytes()
        actual = hashlib.sha256(content).hexdigest()
        if actual != expected:
            raise PackageChangedError(f"{name} has the SHA-256 {actual}; {expected} is known")
        if name == CORE:
            content = changed(content.decode()).encode()
        path = target / Path(name).name
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
        written.append(path)
    return written


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path, help="folder for the sources, and files.f with their names")
    parser.add_argument("--sums", type=Path, default=SUMS, help="the files of the package and their SHA-256")
    arguments = parser.parse_args()
    target: Path = arguments.target
    target.mkdir(parents=True, exist_ok=True)
    source = Path(pythondata_cpu_cv32e40p.data_location)
    try:
        files = prepare(source, target, arguments.sums.read_text())
    except (PackageChangedError, OSError) as error:
        print(f"{PACKAGE} {version(PACKAGE)}: {error}", file=sys.stderr)
        return 1
    (target / "files.f").write_text("".join(f"{file}\n" for file in files))
    return 0


if __name__ == "__main__":
    sys.exit(main())
