// SPDX-License-Identifier: Apache-2.0
// Pipeline register of a stream: one item per cycle, delayed by a cycle. The `ready` path is combinational; a
// pspin_fifo of depth 2 cuts that too.
module pspin_stage #(
  parameter int unsigned Width = 8
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  // From the sender.
  input  logic             valid_i,
  output logic             ready_o,
  input  logic [Width-1:0] data_i,

  // To the receiver.
  output logic             valid_o,
  input  logic             ready_i,
  output logic [Width-1:0] data_o
);

  assign ready_o = !valid_o || ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_o <= 1'b0;
    else if (ready_o) valid_o <= valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (valid_i && ready_o) data_o <= data_i;
  end

endmodule
