// SPDX-License-Identifier: Apache-2.0
// The clock gate of src/common for a simulator, in which inputs have settled when the clock falls: the enable is a register of the
// falling edge. What decides about a latch would be evaluated before it is known which clocks have an edge, once more.
module pspin_gate (
  input  logic clk_i,
  input  logic enable_i,
  output logic clk_o
);

  logic enable_q;

  always_ff @(negedge clk_i) enable_q <= enable_i;

  assign clk_o = clk_i && enable_q;

endmodule
