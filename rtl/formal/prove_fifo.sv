// SPDX-License-Identifier: Apache-2.0
// The FIFO never exceeds its depth, and reports full and empty correctly.
module prove_fifo #(
  parameter int unsigned Depth = 3
) (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       valid_i,
  input logic [3:0] data_i,
  input logic       ready_i
);

  localparam int unsigned CountWidth = $clog2(Depth + 1);

  logic                  ready, valid, live_q = 1'b0;
  logic [3:0]            data;
  logic [CountWidth-1:0] count, pushed_q;

  pspin_fifo #(
    .Width(4),
    .Depth(Depth)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o(ready),
    .data_i,
    .valid_o(valid),
    .ready_i,
    .data_o (data),
    .count_o(count)
  );

  // Entries inside.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) pushed_q <= '0;
    else pushed_q <= pushed_q + CountWidth'(valid_i && ready) - CountWidth'(valid && ready_i);
  end

  always_ff @(posedge clk_i) live_q <= 1'b1;

  always_comb begin
    if (live_q) assume (rst_ni);
    if (rst_ni) begin
      assert (count <= Depth);
      assert (count == pushed_q);
      assert (ready == (pushed_q != Depth));
      assert (valid == (pushed_q != 0));
    end
  end

  logic unused;
  assign unused = ^data;

endmodule
