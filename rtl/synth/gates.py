# SPDX-License-Identifier: Apache-2.0
"""Gate library for synthesis. Areas are relative to a NAND2, so results are independent of the process.

Areas are those of the Nangate 45 nm Open Cell Library over its NAND2_X1 (0.798 um2), rounded to thirds as its cells
are. The ratios of other free libraries are close (sky130: flip-flop 5.33, with reset 6.67). A flip-flop with an enable
is one with a multiplexer, in these libraries too. Delays are estimates by logical effort (Sutherland, Sproull, Harris):
an input has the effort g and a gate the parasitic delay p, in units of tau; an inverter that drives four others takes 5
tau (FO4). Wires are not counted.
"""

from dataclasses import dataclass
from pathlib import Path

FO4 = 5.0  # tau
DRIVES = (1, 2, 4)
LOADS = (0.0, 256.0)  # input capacitance of an inverter


@dataclass(frozen=True)
class Gate:
    """Cell: its area in NAND2, its function, the effort of its inputs, and its parasitic delay."""

    name: str
    area: float
    function: str
    effort: float
    parasitic: float

    def inputs(self) -> list[str]:
        """Return the names of the inputs."""
        return sorted({letter for letter in self.function if letter.isalpha()})

    def sized(self, drive: int) -> float:
        """Return the area with wider transistors: each unit of drive adds two thirds of it."""
        return self.area * (1 + 2 / 3 * (drive - 1))


GATES = [
    Gate("INV", 2 / 3, "!A", 1, 1),
    Gate("BUF", 1, "A", 1, 2.5),
    Gate("NAND2", 1, "!(A B)", 4 / 3, 2),
    Gate("NAND3", 4 / 3, "!(A B C)", 5 / 3, 3),
    Gate("NAND4", 5 / 3, "!(A B C D)", 2, 4),
    Gate("NOR2", 1, "!(A + B)", 5 / 3, 2),
    Gate("NOR3", 4 / 3, "!(A + B + C)", 7 / 3, 3),
    Gate("NOR4", 5 / 3, "!(A + B + C + D)", 3, 4),
    Gate("AOI21", 4 / 3, "!((A B) + C)", 2, 7 / 3),
    Gate("AOI22", 5 / 3, "!((A B) + (C D))", 2, 4),
    Gate("OAI21", 4 / 3, "!((A + B) C)", 2, 7 / 3),
    Gate("OAI22", 5 / 3, "!((A + B) (C + D))", 2, 4),
    Gate("XOR2", 2, "(A !B) + (!A B)", 4, 4),
    Gate("XNOR2", 2, "(A B) + (!A !B)", 4, 4),
    Gate("MUX2", 7 / 3, "(A !C) + (B C)", 2, 4),
]

# Name, area, and the pin that sets the output asynchronously, if any.
FLIP_FLOPS = [("DFF", 17 / 3, ""), ("DFFR", 20 / 3, 'clear : "!R";'), ("DFFS", 20 / 3, 'preset : "!S";')]
CLOCK_TO_OUTPUT = 12.0  # tau, of two latches

HEAD = """library(gates) {
  delay_model : table_lookup; time_unit : "1ps"; voltage_unit : "1V"; current_unit : "1mA";
  pulling_resistance_unit : "1kohm";
  leakage_power_unit : "1nW"; capacitive_load_unit(1, ff); nom_voltage : 1.0; nom_temperature : 25.0; nom_process : 1.0;
  default_max_transition : 100000; default_fanout_load : 1; default_inout_pin_cap : 1; default_input_pin_cap : 1;
  default_output_pin_cap : 0; slew_lower_threshold_pct_rise : 20; slew_upper_threshold_pct_rise : 80;
  input_threshold_pct_rise : 50; output_threshold_pct_rise : 50;
  lu_table_template(load) { variable_1 : input_net_transition; variable_2 : total_output_net_capacitance;
    index_1("0, 1000"); index_2("%s"); }
"""


def table(name: str, values: list[float]) -> str:
    """Return a table of delays at all loads, independent of the slope of the input."""
    row = ", ".join(f"{value:.3f}" for value in values)
    loads = ", ".join(f"{load:.1f}" for load in LOADS)
    return f'{name}(load) {{ index_1("0, 1000"); index_2("{loads}"); values("{row}", "{row}"); }}'


def arcs(effort: float, parasitic: float, capacitance: float) -> str:
    """Return the delays of a gate: parasitic delay, and effort times load over the capacitance of an input."""
    delays = [parasitic + effort * load / capacitance for load in LOADS]
    names = ("cell_rise", "cell_fall", "rise_transition", "fall_transition")
    return " ".join(table(name, delays) for name in names)


def cell(gate: Gate, drive: int) -> str:
    """Return a gate of one size."""
    area, capacitance = gate.sized(drive), gate.effort * drive
    timing = "".join(
        f'timing() {{ related_pin : "{name}"; {arcs(gate.effort, gate.parasitic, capacitance)} }}\n      '
        for name in gate.inputs()
    )
    pins = "".join(
        f"    pin({name}) {{ direction : input; capacitance : {capacitance:.3f}; }}\n" for name in gate.inputs()
    )
    limit = f"direction : output; max_capacitance : {LOADS[-1] * drive};"
    output = f'    pin(Y) {{ {limit} function : "{gate.function}"; {timing}}}\n'
    return f"  cell({gate.name}_X{drive}) {{ area : {area:.4f};\n{pins}{output}  }}\n"


def flip_flop(name: str, area: float, control: str) -> str:
    """Return a flip-flop."""
    pin = control[-3:-2]
    control_pin = f"    pin({pin}) {{ direction : input; capacitance : 1; }}\n" if control else ""
    timing = f'timing() {{ related_pin : "C"; timing_type : rising_edge; {arcs(1, CLOCK_TO_OUTPUT, 1)} }}'
    return f"""  cell({name}) {{ area : {area:.4f};
    ff(IQ, IQN) {{ clocked_on : "C"; next_state : "D"; {control} }}
    pin(C) {{ direction : input; clock : true; capacitance : 1; }}
    pin(D) {{ direction : input; capacitance : 1; }}
{control_pin}    pin(Q) {{ direction : output; max_capacitance : {LOADS[-1]}; function : "IQ"; {timing} }}
  }}
"""


def library() -> str:
    """Return the library in the Liberty format."""
    cells = [cell(gate, drive) for gate in GATES for drive in DRIVES]
    return "".join([HEAD % ", ".join(map(str, LOADS)), *cells, *(flip_flop(*row) for row in FLIP_FLOPS), "}\n"])


def write(path: Path) -> None:
    """Write the library."""
    path.write_text(library(), encoding="utf-8")
