// SPDX-License-Identifier: Apache-2.0
// Stream of a network port to beats of the unit: joins Beats beats of Width bits into one of 512. The input never waits
// if the output does not. A frame begins with a new beat; `user` is that of its last part.
module pspin_nic_widen #(
  parameter int unsigned Width = 64   // a power of two from 8 to 512
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  logic               valid_i,
  output logic               ready_o,
  input  logic [Width-1:0]   data_i,
  input  logic [Width/8-1:0] keep_i,
  input  logic               last_i,
  input  logic               user_i,

  output logic               valid_o,
  input  logic               ready_i,
  output logic [511:0]       data_o,
  output logic [63:0]        keep_o,
  output logic               last_o,
  output logic               user_o
);

  localparam int unsigned Beats      = 512 / Width;
  localparam int unsigned IndexWidth = Beats > 1 ? $clog2(Beats) : 1;

  logic [IndexWidth-1:0] index_q;
  logic                  takes;

  assign ready_o = !valid_o || ready_i;
  assign takes   = valid_i && ready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      index_q <= '0;
      valid_o <= 1'b0;
    end else if (takes) begin
      index_q <= last_i || index_q == IndexWidth'(Beats - 1) ? '0 : index_q + 1'b1;
      valid_o <= last_i || index_q == IndexWidth'(Beats - 1);
    end else if (ready_i) begin
      valid_o <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (takes) begin
      for (int unsigned i = 0; i < Beats; i++) begin
        if (IndexWidth'(i) == index_q) begin
          data_o[i*Width+:Width]     <= data_i;
          keep_o[i*Width/8+:Width/8] <= keep_i;
        end else if (index_q == '0) begin
          keep_o[i*Width/8+:Width/8] <= '0;
        end
      end
      last_o <= last_i;
      user_o <= user_i;
    end
  end

endmodule
