// SPDX-License-Identifier: Apache-2.0
// Merges several streams of packets, round robin per packet. An offer stays until it is accepted.
module pspin_join #(
  parameter int unsigned Width = 8,
  parameter int unsigned N     = 2,
  localparam int unsigned IndexWidth = N > 1 ? $clog2(N) : 1
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // From the senders; last_i ends a packet.
  input  logic [N-1:0]            valid_i,
  output logic [N-1:0]            ready_o,
  input  logic [N-1:0][Width-1:0] data_i,
  input  logic [N-1:0]            last_i,

  // To the receiver.
  output logic                    valid_o,
  input  logic                    ready_i,
  output logic [Width-1:0]        data_o
);

  logic                  held_q, any, ends;
  logic [IndexWidth-1:0] choice, choice_q, index;

  // A stream whose packet has started or is offered keeps its turn.
  pspin_rr_arbiter #(
    .N(N)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .requests_i(valid_i),
    .take_i    (!held_q),
    .valid_o   (any),
    .index_o   (choice)
  );

  assign index   = held_q ? choice_q : choice;
  assign valid_o = held_q ? valid_i[choice_q] : any;
  assign data_o  = data_i[index];
  assign ends    = valid_o && ready_i && last_i[index];
  assign ready_o = N'(valid_o && ready_i) << index;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) held_q <= 1'b0;
    else held_q <= valid_o ? !ends : held_q;
  end

  always_ff @(posedge clk_i) begin
    if (!held_q) choice_q <= choice;
  end

endmodule
