# SPDX-License-Identifier: Apache-2.0
"""Programs for HPUs: handlers on PsPIN's runtime, built by the compiler of the repository."""

import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

HOME = Path(__file__).resolve().parents[3]
RUNTIME = HOME / "sdk" / "pspin" / "rt" / "runtime"
START = RUNTIME / "src" / "start.S"
LAYOUT = HOME / "rtl" / "tests" / "core" / "program.ld"
COMPILER = HOME / ".venv" / "bin" / "python-zig"
FLAGS = ["-target", "riscv32-freestanding-ilp32", "-mcpu=generic_rv32+m+a+c+zicsr+relax", "-mabi=ilp32", "-nostdlib"]
FLAGS += ["-O2", "-ffreestanding", "-fno-sanitize=all", "-fno-stack-protector", "-fno-asynchronous-unwind-tables"]
FLAGS += ["-fomit-frame-pointer", "-static", "-mcmodel=medlow", "-fno-pic", f"-I{RUNTIME / 'include'}"]
FLAGS += ["-Wl,-z,max-page-size=16", f"-Wl,-T,{LAYOUT}"]
PROGRAM, HANDLER = 0x1D00_0000, 0x1C00_0000
SYMBOLS, EMPTY = 2, 8  # types of sections: symbols; bytes that are 0 and not in the file


@dataclass(frozen=True)
class Program:
    """Contents of program memory and of handler memory, and addresses of the symbols."""

    code: bytes
    data: bytes
    symbols: dict[str, int]


def build(source: Path, folder: Path) -> Program:
    """Compile handlers."""
    elf = folder / f"{source.stem}.elf"
    subprocess.run([COMPILER, "cc", *FLAGS, START, source, "-o", elf], check=True)
    data = elf.read_bytes()
    table, size, count = *struct.unpack_from("<I", data, 0x20), *struct.unpack_from("<HH", data, 0x2E)
    # Each section: name, type, flags, address, offset, size, link, info, alignment, size of an entry.
    sections = [struct.unpack_from("<10I", data, table + index * size) for index in range(count)]
    code, static = bytearray(), bytearray()
    symbols = {}
    for _, kind, flags, address, offset, length, link, *_ in sections:
        if flags & 0b100:  # executable
            code[address - PROGRAM :] = data[offset : offset + length]
        elif flags & 0b10:  # in memory
            static[address - HANDLER :] = bytes(length) if kind == EMPTY else data[offset : offset + length]
        if kind == SYMBOLS:
            for at in range(offset, offset + length, 16):
                name, value = struct.unpack_from("<II", data, at)
                start = sections[link][4] + name
                symbols[data[start : data.index(0, start)].decode()] = value
    return Program(bytes(code), bytes(static), symbols)
