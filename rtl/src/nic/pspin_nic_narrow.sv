// SPDX-License-Identifier: Apache-2.0
// Beats of the unit to the stream of a network port: cuts a beat of 512 bits into parts of Width bits, without those
// behind the end of the frame. The output has no gap inside a beat, and none between beats that arrive in time.
module pspin_nic_narrow #(
  parameter int unsigned Width = 64   // a power of two from 8 to 512
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  logic               valid_i,
  output logic               ready_o,
  input  logic [511:0]       data_i,
  input  logic [63:0]        keep_i,
  input  logic               last_i,
  input  logic               user_i,

  output logic               valid_o,
  input  logic               ready_i,
  output logic [Width-1:0]   data_o,
  output logic [Width/8-1:0] keep_o,
  output logic               last_o,
  output logic               user_o
);

  localparam int unsigned LeftWidth = 64 - Width / 8 + 1;

  // The part at the output is in the lowest bits; `left` has the bytes behind it.
  logic [511:0]         data_q;
  logic [63:0]          keep_q;
  logic                 last_q, user_q, is_end;
  logic [LeftWidth-1:0] left;

  assign left    = LeftWidth'(keep_q >> (Width / 8));
  assign is_end  = left == '0;
  assign data_o  = data_q[Width-1:0];
  assign keep_o  = keep_q[Width/8-1:0];
  assign last_o  = last_q && is_end;
  assign user_o  = user_q && last_o;
  assign ready_o = !valid_o || (ready_i && is_end);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) valid_o <= 1'b0;
    else if (ready_o) valid_o <= valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (ready_o) begin
      data_q <= data_i;
      keep_q <= keep_i;
      last_q <= last_i;
      user_q <= user_i;
    end else if (ready_i) begin
      data_q <= data_q >> Width;
      keep_q <= keep_q >> (Width / 8);
    end
  end

endmodule
