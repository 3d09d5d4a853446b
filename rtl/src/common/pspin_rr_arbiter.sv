// SPDX-License-Identifier: Apache-2.0
// Combinational round-robin arbiter for N requesters: the search starts after the latest grant; `take_i` commits the
// grant.
module pspin_rr_arbiter #(
  parameter int unsigned N = 8,
  localparam int unsigned IndexWidth = N > 1 ? $clog2(N) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic [N-1:0]          requests_i,
  input  logic                  take_i,
  output logic                  valid_o,
  output logic [IndexWidth-1:0] index_o
);

  localparam logic [IndexWidth-1:0] Last = IndexWidth'(N - 1);

  logic [IndexWidth-1:0] next_q, first, first_behind;
  logic                  any_behind;

  // Both searches run in parallel.
  pspin_first #(
    .N(N)
  ) u_first (
    .bits_i (requests_i),
    .valid_o,
    .index_o(first)
  );

  pspin_first #(
    .N(N)
  ) u_behind (
    .bits_i (requests_i & ({N{1'b1}} << next_q)),
    .valid_o(any_behind),
    .index_o(first_behind)
  );

  assign index_o = any_behind ? first_behind : first;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) next_q <= '0;
    else if (valid_o && take_i) next_q <= index_o == Last ? '0 : index_o + 1'b1;
  end

endmodule
