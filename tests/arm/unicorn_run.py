# SPDX-License-Identifier: Apache-2.0
"""Run A32 code on the emulator unicorn: the reference of `crates/card/hpu/src/isa/arm/differential.rs`.

Standard input: four words (address and size of code, address and size of data), code and data. Standard output: the
data after the code has run to its end.
"""

import struct
import sys

try:
    import unicorn
    from unicorn import arm_const
except ImportError:
    sys.exit(3)

_PAGE = 4096
_CPACR_FULL = 0xF << 20
_FPEXC_ENABLED = 1 << 30


def _map(emulator: unicorn.Uc, address: int, content: bytes) -> None:
    start = address & -_PAGE
    end = (address + len(content) + _PAGE - 1) & -_PAGE
    emulator.mem_map(start, end - start)
    emulator.mem_write(address, content)


def _main() -> None:
    source = sys.stdin.buffer
    code_address, code_size, data_address, data_size = struct.unpack("<4I", source.read(16))
    code, data = source.read(code_size), source.read(data_size)
    emulator = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_ARM)
    emulator.ctl_set_cpu_model(arm_const.UC_CPU_ARM_CORTEX_A15)
    _map(emulator, code_address, code)
    _map(emulator, data_address, data)
    emulator.reg_write(arm_const.UC_ARM_REG_C1_C0_2, _CPACR_FULL)
    emulator.reg_write(arm_const.UC_ARM_REG_FPEXC, _FPEXC_ENABLED)
    try:
        emulator.emu_start(code_address, code_address + code_size)
    except unicorn.UcError as error:
        at = emulator.reg_read(arm_const.UC_ARM_REG_PC)
        sys.stderr.write(f"unicorn: {error} at {at:#x}\n")
        sys.stdout.buffer.write(struct.pack("<I", at))
        sys.exit(4)
    sys.stdout.buffer.write(bytes(emulator.mem_read(data_address, data_size)))


_main()
