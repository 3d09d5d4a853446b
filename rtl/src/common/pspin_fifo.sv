// SPDX-License-Identifier: Apache-2.0
// Queue of Depth entries of Width bits. An entry leaves in the next cycle at the earliest; ready does not depend on the
// other side.
module pspin_fifo #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 4,
  localparam int unsigned IndexWidth = Depth > 1 ? $clog2(Depth) : 1,
  localparam int unsigned CountWidth = $clog2(Depth + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  valid_i,
  output logic                  ready_o,
  input  logic [Width-1:0]      data_i,

  output logic                  valid_o,
  input  logic                  ready_i,
  output logic [Width-1:0]      data_o,

  output logic [CountWidth-1:0] count_o
);

  localparam logic [IndexWidth-1:0] Last = IndexWidth'(Depth - 1);

  logic [Width-1:0]      entries_q [Depth];
  logic [IndexWidth-1:0] head_q, tail_q;
  logic [CountWidth-1:0] count_q;
  logic                  push, pop;

  assign ready_o = count_q != CountWidth'(Depth);
  assign valid_o = count_q != '0;
  assign data_o  = entries_q[head_q];
  assign count_o = count_q;
  assign push    = valid_i && ready_o;
  assign pop     = valid_o && ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_q  <= '0;
      tail_q  <= '0;
      count_q <= '0;
    end else begin
      if (push) tail_q <= tail_q == Last ? '0 : tail_q + 1'b1;
      if (pop) head_q <= head_q == Last ? '0 : head_q + 1'b1;
      count_q <= count_q + CountWidth'(push) - CountWidth'(pop);
    end
  end

  always_ff @(posedge clk_i) begin
    if (push) entries_q[tail_q] <= data_i;
  end

endmodule
