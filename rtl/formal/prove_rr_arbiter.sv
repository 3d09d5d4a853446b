// SPDX-License-Identifier: Apache-2.0
// The arbiter grants each requester after at most one grant of each other requester.
module prove_rr_arbiter #(
  parameter int unsigned N = 4,
  localparam int unsigned IndexWidth = $clog2(N)
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic [N-1:0]          requests_i,
  input logic                  take_i,
  input logic [IndexWidth-1:0] watched_i
);

  logic                  valid;
  logic [IndexWidth-1:0] index, watched_q;
  logic [IndexWidth:0]   others_q;
  logic                  live_q = 1'b0;

  pspin_rr_arbiter #(
    .N(N)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .requests_i,
    .take_i,
    .valid_o(valid),
    .index_o(index)
  );

  // Grants of others during the uninterrupted request of an arbitrary requester.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) others_q <= '0;
    else if (!requests_i[watched_q] || (take_i && index == watched_q)) others_q <= '0;
    else if (take_i) others_q <= others_q + 1'b1;
  end

  always_ff @(posedge clk_i) begin
    live_q    <= 1'b1;
    watched_q <= live_q ? watched_q : watched_i;
  end

  always_comb begin
    if (live_q) assume (rst_ni);
    assert (valid == |requests_i);
    if (valid) assert (requests_i[index]);
    if (rst_ni) assert (others_q < N);
  end

endmodule
