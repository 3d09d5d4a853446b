// SPDX-License-Identifier: Apache-2.0
// Invariants of the engine that sends packets: a packet is a sequence of full beats, except for the last; and each
// command ends once, and returns its credit once.
module pspin_outbound_sva
  import pspin_pkg::*;
#(
  parameter int unsigned Queue = 32
) (
  input logic         clk_i,
  input logic         rst_ni,
  input logic         command_valid_i,
  input logic         credit_give_o,
  input logic         send_valid_o,
  input logic         send_ready_i,
  input command_t     send_command_o,
  input logic [6:0]   send_bytes_o,
  input logic         send_first_o,
  input logic         send_last_o,
  input logic         end_valid_o,
  input logic         end_ready_i,
  input command_end_t end_o
);

  default clocking @(posedge clk_i);
  endclocking
  default disable iff (!rst_ni);

  // Beats until the end of a packet; commands with a credit outstanding, and unfinished ones.
  logic        is_first_q;
  logic [31:0] bytes_q, bytes;
  int unsigned credits, open;

  assign bytes = (send_first_o ? '0 : bytes_q) + 32'(send_bytes_o);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      is_first_q <= 1'b1;
      credits    <= 0;
      open       <= 0;
    end else begin
      if (send_valid_o && send_ready_i) is_first_q <= send_last_o;
      credits <= credits + 32'(command_valid_i) - 32'(credit_give_o);
      open    <= open + 32'(command_valid_i) - 32'(end_valid_o && end_ready_i);
    end
  end

  always_ff @(posedge clk_i) if (send_valid_o && send_ready_i) bytes_q <= bytes;

  First : assert property (send_valid_o |-> send_first_o == is_first_q);
  WholeBeats : assert property (send_valid_o && !send_last_o |-> 32'(send_bytes_o) == BeatBytes);
  WholePacket : assert property (send_valid_o && send_last_o |-> bytes == send_command_o.data.size);
  CreditOnce : assert property (credits <= Queue && !(credit_give_o && credits == 0));
  EndsOnce : assert property (!(end_valid_o && open == 0));
  EndsItsOwn : assert property (end_valid_o |-> end_o.hpu == send_command_o.hpu && end_o.slot == send_command_o.slot);

endmodule

bind pspin_outbound pspin_outbound_sva #(
  .Queue(Queue)
) u_sva (.*);
