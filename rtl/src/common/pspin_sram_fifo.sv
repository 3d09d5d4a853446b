// SPDX-License-Identifier: Apache-2.0
// Queue of Depth entries of Width bits in a memory, for entries that would need too many flip-flops. An entry leaves an
// empty queue after two cycles; the next one is available in the cycle after a pop. Ready does not depend on the other
// side.
module pspin_sram_fifo #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 16,
  localparam int unsigned RowWidth   = Depth > 1 ? $clog2(Depth) : 1,
  localparam int unsigned CountWidth = $clog2(Depth + 1)
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             valid_i,
  output logic             ready_o,
  input  logic [Width-1:0] data_i,

  output logic             valid_o,
  input  logic             ready_i,
  output logic [Width-1:0] data_o
);

  localparam logic [RowWidth-1:0] Last = RowWidth'(Depth - 1);

  logic [RowWidth-1:0]   next_q, tail_q;
  logic [CountWidth-1:0] count_q;         // including the prefetched entry
  logic                  valid_q;         // the memory outputs the first entry
  logic                  push, pop, reads;

  assign ready_o = count_q != CountWidth'(Depth);
  assign valid_o = valid_q;
  assign push    = valid_i && ready_o;
  assign pop     = valid_q && ready_i;

  // An entry is not read in the cycle of its write.
  assign reads = (!valid_q || pop) && count_q != CountWidth'(valid_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      next_q  <= '0;
      tail_q  <= '0;
      count_q <= '0;
      valid_q <= 1'b0;
    end else begin
      if (push) tail_q <= tail_q == Last ? '0 : tail_q + 1'b1;
      if (reads) next_q <= next_q == Last ? '0 : next_q + 1'b1;
      count_q <= count_q + CountWidth'(push) - CountWidth'(pop);
      valid_q <= reads || (valid_q && !pop);
    end
  end

  pspin_sram_2p #(
    .Rows (Depth),
    .Width(Width)
  ) u_entries (
    .clk_i,
    .we_i   (push),
    .wrow_i (tail_q),
    .wdata_i(data_i),
    .re_i   (reads),
    .rrow_i (next_q),
    .rdata_o(data_o)
  );

endmodule
