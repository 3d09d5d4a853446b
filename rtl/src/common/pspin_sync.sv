// SPDX-License-Identifier: Apache-2.0
// Synchronizer: two flip-flops per bit. Several bits need a code in which at most one changes at a time. Constraints
// (rtl/constraints) name the first flip-flop.
module pspin_sync #(
  parameter int unsigned Width = 1
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [Width-1:0] data_i,
  output logic [Width-1:0] data_o
);

  (* ASYNC_REG = "TRUE" *) logic [Width-1:0] meta_q, stable_q;

  assign data_o = stable_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      meta_q   <= '0;
      stable_q <= '0;
    end else begin
      meta_q   <= data_i;
      stable_q <= meta_q;
    end
  end

endmodule
