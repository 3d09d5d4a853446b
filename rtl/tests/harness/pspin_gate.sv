// SPDX-License-Identifier: Apache-2.0
// Clock gate of src/common for a simulator, whose inputs are settled at the falling edge: the enable is a register of
// that edge. A latch would be evaluated again before it is known which clocks have an edge.
module pspin_gate (
  input  logic clk_i,
  input  logic enable_i,
  output logic clk_o
);

  logic enable_q;

  always_ff @(negedge clk_i) enable_q <= enable_i;

  assign clk_o = clk_i && enable_q;

endmodule
