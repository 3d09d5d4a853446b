// SPDX-License-Identifier: Apache-2.0
// Allocator of the numbers 0 to Count - 1, in round-robin order: for packet slots in memory, and for message numbers.
module pspin_nic_pool #(
  parameter int unsigned Count = 64,
  localparam int unsigned Width = Count > 1 ? $clog2(Count) : 1
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  // Next number, stable until taken.
  output logic             valid_o,
  input  logic             take_i,
  output logic [Width-1:0] number_o,

  // Freed number.
  input  logic             give_i,
  input  logic [Width-1:0] given_i
);

  logic [Count-1:0] free_q;
  logic [Width-1:0] next;
  logic             next_valid, next_ready;

  pspin_rr_arbiter #(
    .N(Count)
  ) u_next (
    .clk_i,
    .rst_ni,
    .requests_i(free_q),
    .take_i    (next_ready),
    .valid_o   (next_valid),
    .index_o   (next)
  );

  pspin_stage #(
    .Width(Width)
  ) u_stage (
    .clk_i,
    .rst_ni,
    .valid_i(next_valid),
    .ready_o(next_ready),
    .data_i (next),
    .valid_o,
    .ready_i(take_i),
    .data_o (number_o)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      free_q <= '1;
    end else begin
      if (next_valid && next_ready) free_q[next] <= 1'b0;
      if (give_i) free_q[given_i] <= 1'b1;
    end
  end

endmodule
