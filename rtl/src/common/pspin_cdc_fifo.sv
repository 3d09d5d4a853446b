// SPDX-License-Identifier: Apache-2.0
// Queue of Depth entries between two clocks of any ratio. Each side sees the pointer of the other one through a
// synchronizer, as a Gray code: of its bits, one changes at a time, so that a sample is the old or the new pointer.
//
// An entry is written before its pointer is, and the reader uses it two edges after the pointer's change: the data needs
// no synchronizer. Both sides must be reset together.
module pspin_cdc_fifo #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 8   // a power of two
) (
  input  logic             w_clk_i,
  input  logic             w_rst_ni,
  input  logic             w_valid_i,
  output logic             w_ready_o,
  input  logic [Width-1:0] w_data_i,

  input  logic             r_clk_i,
  input  logic             r_rst_ni,
  output logic             r_valid_o,
  input  logic             r_ready_i,
  output logic [Width-1:0] r_data_o
);

  localparam int unsigned IndexWidth   = $clog2(Depth);
  localparam int unsigned PointerWidth = IndexWidth + 1;

  if (Depth < 2 || 2**IndexWidth != Depth) begin : gen_check_depth
    $fatal(1, "the depth of a queue between two clocks is a power of two from 2 on");
  end

  typedef logic [PointerWidth-1:0] pointer_t;

  // Pointers count to twice the depth. A queue is full if the codes differ in the upper two bits only.
  localparam pointer_t Full = pointer_t'(3) << (PointerWidth - 2);

  logic [Width-1:0] entries_q [Depth];
  pointer_t         w_pointer_q, w_next, w_gray_q, w_of_reader, r_pointer_q, r_next, r_gray_q, r_of_writer;
  logic             push, pop;

  assign w_ready_o = w_gray_q != (w_of_reader ^ Full);
  assign push      = w_valid_i && w_ready_o;
  assign w_next    = w_pointer_q + pointer_t'(push);

  always_ff @(posedge w_clk_i or negedge w_rst_ni) begin
    if (!w_rst_ni) begin
      w_pointer_q <= '0;
      w_gray_q    <= '0;
    end else begin
      w_pointer_q <= w_next;
      w_gray_q    <= w_next ^ (w_next >> 1);
    end
  end

  always_ff @(posedge w_clk_i) begin
    if (push) entries_q[w_pointer_q[IndexWidth-1:0]] <= w_data_i;
  end

  pspin_sync #(
    .Width(PointerWidth)
  ) u_to_writer (
    .clk_i (w_clk_i),
    .rst_ni(w_rst_ni),
    .data_i(r_gray_q),
    .data_o(w_of_reader)
  );

  assign r_valid_o = r_gray_q != r_of_writer;
  assign r_data_o  = entries_q[r_pointer_q[IndexWidth-1:0]];
  assign pop       = r_valid_o && r_ready_i;
  assign r_next    = r_pointer_q + pointer_t'(pop);

  always_ff @(posedge r_clk_i or negedge r_rst_ni) begin
    if (!r_rst_ni) begin
      r_pointer_q <= '0;
      r_gray_q    <= '0;
    end else begin
      r_pointer_q <= r_next;
      r_gray_q    <= r_next ^ (r_next >> 1);
    end
  end

  pspin_sync #(
    .Width(PointerWidth)
  ) u_to_reader (
    .clk_i (r_clk_i),
    .rst_ni(r_rst_ni),
    .data_i(w_gray_q),
    .data_o(r_of_writer)
  );

endmodule
