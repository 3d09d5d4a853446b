// SPDX-License-Identifier: Apache-2.0
// The clock gate of the core, by the name under which the core's package knows it. Simulations and FPGAs have none: the core of
// PsPIN waits at loads instead of sleeping, so the gate is always open while it is enabled. An ASIC puts its cell here.
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
