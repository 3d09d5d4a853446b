# SPDX-License-Identifier: Apache-2.0
"""Types of the SystemVerilog packages: struct("her_t").pack(message=3), enum("role_e").RoleCompletion."""

from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

from pyslang.ast import Compilation, EnumType, PackedStructType, ParameterSymbol
from pyslang.syntax import SyntaxTree

SOURCES = Path(__file__).resolve().parents[2] / "src"
CONSTANTS = SOURCES.parents[1] / "out" / "rtl" / "gen" / "pspin-tiny"


class Struct:
    """Packed struct, whose values are numbers for the ports of a unit, and dictionaries for Python."""

    def __init__(self, kind: PackedStructType) -> None:
        self.width = kind.bitWidth
        self.fields = {field.name: (field.bitOffset, field.type.canonicalType) for field in kind}

    def pack(self, **values: Any) -> int:
        """Return the bits of a value; fields not given are 0."""
        bits = 0
        for name, value in values.items():
            offset, kind = self.fields[name]
            number = Struct(kind).pack(**value) if isinstance(value, dict) else int(value)
            assert 0 <= number < 1 << kind.bitWidth, f"{name} = {number} has more than {kind.bitWidth} bits"
            bits |= number << offset
        return bits

    def unpack(self, bits: int) -> dict[str, Any]:
        """Return the fields of a value."""
        values: dict[str, Any] = {}
        for name, (offset, kind) in self.fields.items():
            number = int(bits) >> offset & (1 << kind.bitWidth) - 1
            values[name] = Struct(kind).unpack(number) if isinstance(kind, PackedStructType) else number
        return values


@cache
def _compilation() -> Compilation:
    """Read the packages once."""
    compilation = Compilation()
    for path in sorted([*SOURCES.glob("*_pkg.sv"), *CONSTANTS.glob("*_pkg.sv")]):
        compilation.addSyntaxTree(SyntaxTree.fromFile(str(path)))
    return compilation


def _find(name: str, package: str) -> Any:
    found = _compilation().getPackage(package).find(name)
    if found is None:
        raise KeyError(f"{package} has no {name}")
    return found.canonicalType


@cache
def struct(name: str, package: str = "pspin_pkg") -> Struct:
    """Return a packed struct of a package."""
    kind = _find(name, package)
    assert isinstance(kind, PackedStructType)
    return Struct(kind)


@cache
def enum(name: str, package: str = "pspin_pkg") -> type[IntEnum]:
    """Return an enumeration of a package."""
    kind = _find(name, package)
    assert isinstance(kind, EnumType)
    return IntEnum(name, {value.name: int(value.value.value) for value in kind})


@cache
def constants(package: str) -> dict[str, int]:
    """Return the numbers of a package by their names."""
    members = _compilation().getPackage(package)
    return {one.name: int(one.value.value) for one in members if isinstance(one, ParameterSymbol)}
