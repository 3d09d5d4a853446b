# SPDX-License-Identifier: Apache-2.0
"""Makes the sources of the HPU's core from its package: the files of CV32E40P with a few changes.

The package stays unchanged. Its files are copied to a build folder and patched there: the core decodes atomic
instructions; it reports atomic operations, access sizes, instructions entering the execute stage, and traps; its
instruction counter counts, and its cycle counter is the HPU's, which also counts while the core has no clock; and no
handler can leave core state for a later one. Every file must match its checksum, and every change must find its place
exactly once.
"""

import argparse
import hashlib
import sys
from importlib.metadata import version
from pathlib import Path

import pythondata_cpu_cv32e40p

PACKAGE = "pythondata-cpu-cv32e40p"
SUMS = Path(__file__).with_name("cv32e40p.sha256")

# Replacements in each file.
CHANGES = {
    "rtl/cv32e40p_core.sv": [
        ("  localparam A_EXTENSION = 0;\n", "  localparam A_EXTENSION = 1;\n"),
        (
            "    input logic [31:0] hart_id_i,\n",
            "    input logic [31:0] hart_id_i,\n    input logic [63:0] cycles_i,\n",
        ),
        ("      .hart_id_i       (hart_id_i),\n", "      .hart_id_i       (hart_id_i),\n      .cycles_i,\n"),
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
            "    // The instruction in decode; whether one left it a cycle ago, or one traps instead, and why;\n"
            "    // whether one for control registers is in the execute stage\n"
            "    output logic        retires_o,\n    output logic [31:0] pc_id_o,\n"
            "    output logic        traps_o,\n    output logic [ 5:0] cause_o,\n"
            "    output logic        csr_ex_o\n);\n",
        ),
        (
            "  assign irq_sec_i = 1'b0;\n",
            "  assign irq_sec_i = 1'b0;\n  assign data_type_o = data_type_ex;\n"
            "  assign data_second_o = data_misaligned_ex;\n  assign retires_o = mhpmevent_minstret;\n"
            "  assign pc_id_o = pc_id;\n  assign traps_o = csr_save_cause;\n  assign cause_o = csr_cause;\n"
            "  assign csr_ex_o = csr_access_ex;\n",
        ),
    ],
    # Handlers have no machine mode: neither its instructions nor its control registers.
    "rtl/cv32e40p_decoder.sv": [
        ("illegal_insn_o = (PULP_SECURE) ? current_priv_lvl_i != PRIV_LVL_M : 1'b0;\n", "illegal_insn_o = 1'b1;\n"),
        ("                wfi_o = 1'b1;\n", "                illegal_insn_o = 1'b1;\n"),
        (
            "          illegal_insn_o = csr_illegal;\n",
            "          illegal_insn_o = csr_illegal || instr_rdata_i[31:28] != 4'hC;\n",
        ),
    ],
    "rtl/cv32e40p_cs_registers.sv": [
        ("mcountinhibit_q[inh_gidx] <= 'b1;  // default disable\n", "mcountinhibit_q[inh_gidx] <= 'b0;\n"),
        (
            "    input  logic [31:0] hart_id_i,\n",
            "    input  logic [31:0] hart_id_i,\n    input  logic [63:0] cycles_i,\n",
        ),
        (
            "      if ((cnt_gidx == 1) ||",
            "      if (cnt_gidx == 0) begin : gen_cycles\n        assign mhpmcounter_q[cnt_gidx] = cycles_i;\n"
            "      end else if ((cnt_gidx == 1) ||",
        ),
    ],
}


class PackageChangedError(Exception):
    """The package differs from the one for which the changes were written."""


def changed(name: str, text: str) -> str:
    """Return the text of a file with all changes.

    Raises:
        PackageChangedError: When a change does not find its place exactly once.

    """
    for old, new in CHANGES.get(name, []):
        found = text.count(old)
        if found != 1:
            raise PackageChangedError(f"{name}: {old.strip()!r} is there {found} times, not once")
        text = text.replace(old, new)
    return text


def prepare(source: Path, target: Path, sums: str) -> list[Path]:
    """Copy the files listed in `sums` from `source` to `target`, in compilation order.

    Raises:
        PackageChangedError: When the checksum of a file differs.

    """
    written = []
    for line in sums.splitlines():
        expected, name = line.split()
        content = (source / name).read_bytes()
        actual = hashlib.sha256(content).hexdigest()
        if actual != expected:
            raise PackageChangedError(f"{name} has the SHA-256 {actual}; {expected} is known")
        if name in CHANGES:
            content = changed(name, content.decode()).encode()
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
