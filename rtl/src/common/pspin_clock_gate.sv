// SPDX-License-Identifier: Apache-2.0
// Clock gate of the core, under the name used by the core's package. Simulations and FPGAs need none: PsPIN's core
// waits at loads instead of sleeping, so the gate is always open while enabled. An ASIC replaces it by its cell.
module cv32e40p_clock_gate (
  input  logic clk_i,
  input  logic en_i,
  input  logic scan_cg_en_i,
  output logic clk_o
);

  logic unused;
  assign unused = en_i ^ scan_cg_en_i;
  assign clk_o  = clk_i;

endmodule
