# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of handlers in a compiled instructions.c: those in the program, not those that runs execute.

Arguments: the C type of sizes, the numbers of the handlers, `payload` for payload handlers or `all` for header and
completion handlers, too, and the kind of HPU (by default rv32imafdc).
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from spinkit import _paths

PAYLOAD = {
    1: ("ping_pong_payload",),
    2: ("broadcast_payload",),
    3: ("server_payload",),
    4: ("parity_payload",),
    5: ("datatype_payload",),
}
OTHERS = {3: ("server_header",), 4: ("parity_header", "parity_completion")}


def main(size: str, numbers: str, which: str, kind: str = "rv32imafdc") -> None:
    """Print a line for each number."""
    spincc = _paths.command("spincc")
    with TemporaryDirectory(prefix="spinkit-instructions-") as folder:
        program = Path(folder) / "instructions"
        source = Path(__file__).with_name("instructions.c")
        # One kind of HPU, so that each handler is listed once.
        command = [spincc, "-O2", "--hpu", kind, f"-DSIZE={size}", source, "-o", program]
        subprocess.run(command, check=True)
        for number in map(int, numbers.split(",")):
            handlers = PAYLOAD[number] + (OTHERS.get(number, ()) if which == "all" else ())
            count = sum(counted(spincc, program, handler) for handler in handlers)
            print(json.dumps({"handler": number, "instructions": count, "data_ok": True}))


def counted(spincc: Path, program: Path, handler: str) -> int:
    """Return the number of instructions of one handler."""
    listing = subprocess.run([spincc, "--disassemble", handler, program], check=True, capture_output=True, text=True)
    # Constants among the code of ARM are no instructions.
    count = len(re.findall(r"^ *[0-9a-f]+:  (?!.*\.word ).*", listing.stdout, re.MULTILINE))
    if count == 0:
        sys.exit(f"{handler}: spincc --disassemble printed no instructions")
    return count


main(*sys.argv[1:])
