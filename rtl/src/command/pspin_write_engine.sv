// SPDX-License-Identifier: Apache-2.0
// Writes a stream of bytes from the host to ranges of memory, beat by beat on arrival, for the off-cluster DMA engine
// (PsPIN III-C, Flow 4). The stream of a range starts with its first byte; a flag marks its last beat.
module pspin_write_engine
  import pspin_pkg::*;
#(
  parameter int unsigned Depth = 16   // buffered beats
) (
  input  logic          clk_i,
  input  logic          rst_ni,

  // From the engine: the range of the stream, until its last beat is written. A discarded range is not changed.
  input  logic          range_valid_i,
  input  range_t        range_i,
  input  logic          discard_i,

  // From the host. Beats of a refused read are not written.
  input  logic          data_valid_i,
  output logic          data_ready_o,
  input  logic [511:0]  data_i,
  input  logic          last_i,
  input  logic          refused_i,

  // To pspin_nhi.
  output logic          write_valid_o,
  input  logic          write_ready_i,
  output beat_request_t write_o,

  // To the engine, which may delay it by end_ready_i: the range is written, or the host refused it.
  output logic          end_valid_o,
  input  logic          end_ready_i,
  output logic          end_refused_o,

  output logic          empty_o
);

  localparam int unsigned CountWidth = $clog2(Depth + 1);

  logic                  in_valid, in_ready, pop, last, refused, refused_q;
  logic [511:0]          data;
  logic [CountWidth-1:0] count;

  pspin_fifo #(
    .Width(514),
    .Depth(Depth)
  ) u_data (
    .clk_i,
    .rst_ni,
    .valid_i(data_valid_i),
    .ready_o(in_ready),
    .data_i ({refused_i || refused_q, last_i, data_i}),
    .valid_o(in_valid),
    .ready_i(pop),
    .data_o ({refused, last, data}),
    .count_o(count)
  );

  // Beats after a refused one are refused too.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) refused_q <= 1'b0;
    else if (data_valid_i && in_ready) refused_q <= (refused_i || refused_q) && !last_i;
  end

  // Each beat consists of the end of the previous beat of the stream, and the beginning of this one.
  logic         drained_q, is_final, is_skipped, moves;
  logic [31:0]  left_q, left, next_q, address;
  logic [511:0] before_q;
  logic [6:0]   first_byte, up_to;
  logic [5:0]   final_byte;

  assign left       = left_q == '0 ? beats_of(range_i) : left_q;
  assign address    = left_q == '0 ? {range_i.address[31:6], 6'b0} : next_q;
  assign is_final   = left == 32'd1;
  assign is_skipped = in_valid && refused && !drained_q;

  // The stream may end one beat before the range. A refused beat ends the range.
  assign write_valid_o = range_valid_i && ((in_valid && !refused) || drained_q) && (!is_final || end_ready_i);
  assign moves         = write_valid_o && write_ready_i;
  assign pop           = (moves && !drained_q) || (is_skipped && range_valid_i && (!last || end_ready_i));
  assign end_valid_o   = (moves && is_final) || (is_skipped && range_valid_i && last);
  assign end_refused_o = is_skipped;

  assign final_byte = range_i.address[5:0] + range_i.size[5:0] - 6'd1;
  assign first_byte = left_q == '0 ? 7'(range_i.address[5:0]) : 7'd0;
  assign up_to      = is_final ? 7'(final_byte) + 7'd1 : 7'(BeatBytes);

  always_comb begin
    write_o.address = address;
    write_o.wdata   = 512'({drained_q ? 512'b0 : data, before_q} >> (10'd512 - {1'b0, range_i.address[5:0], 3'b000}));
    for (int unsigned i = 0; i < BeatBytes; i++) begin
      write_o.strobe[i] = 7'(i) >= first_byte && 7'(i) < up_to && range_i.size != '0 && !discard_i;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      drained_q <= 1'b0;
      left_q    <= '0;
    end else begin
      if (end_valid_o && end_ready_i) begin
        drained_q <= 1'b0;
        left_q    <= '0;
      end else begin
        if (moves) left_q <= left - 1'b1;
        if (moves && last) drained_q <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (moves) begin
      next_q   <= address + 32'(BeatBytes);
      before_q <= data;
    end
  end

  assign data_ready_o = in_ready;
  assign empty_o      = count == '0 && !data_valid_i && !drained_q;

endmodule
