// SPDX-License-Identifier: Apache-2.0
// Clock gate: suppresses the edge at the end of a cycle in which it is not enabled. An ASIC replaces it by its cell; on
// an FPGA it may be a wire, because gated logic does nothing then.
module pspin_gate (
  input  logic clk_i,
  input  logic enable_i,
  output logic clk_o
);

  logic enable_q;

  always_latch begin
    if (!clk_i) enable_q = enable_i;
  end

  assign clk_o = clk_i && enable_q;

endmodule
