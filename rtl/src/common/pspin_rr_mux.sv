// SPDX-License-Identifier: Apache-2.0
// Merges N streams round robin (pspin_rr_arbiter). The offer may change until it is accepted.
module pspin_rr_mux #(
  parameter int unsigned N     = 8,
  parameter int unsigned Width = 8,
  localparam int unsigned IndexWidth = N > 1 ? $clog2(N) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // From the senders.
  input  logic [N-1:0]          valid_i,
  output logic [N-1:0]          ready_o,
  input  logic [Width-1:0]      data_i [N],

  // To the receiver, with the index of the sender.
  output logic                  valid_o,
  input  logic                  ready_i,
  output logic [Width-1:0]      data_o,
  output logic [IndexWidth-1:0] index_o
);

  pspin_rr_arbiter #(
    .N(N)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .requests_i(valid_i),
    .take_i    (ready_i),
    .valid_o,
    .index_o
  );

  assign ready_o = N'(valid_o && ready_i) << index_o;
  assign data_o  = data_i[index_o];

endmodule
