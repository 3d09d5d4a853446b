// SPDX-License-Identifier: Apache-2.0
// Copies of one DMA engine, in order, as beats (PsPIN III-C). A beat reads a word of the source, and writes the word of
// the destination whose bytes are then complete in the realigner: if bytes move towards the start of a word, that is
// the previous word. So a copy takes as many beats as it touches words of the destination, and one more in that case.
module pspin_dma_queue
  import pspin_pkg::*;
#(
  parameter int unsigned Depth      = 8,
  parameter int unsigned BytesWidth = 32,  // width of sizes
  parameter int unsigned TagWidth   = 5,
  parameter int unsigned LeastBeats = 2,
  localparam int unsigned PaddingWidth = LeastBeats > 1 ? $clog2(LeastBeats) : 1
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // Copies.
  input  logic                    valid_i,
  output logic                    ready_o,
  input  logic [31:0]             from_i,
  input  logic [31:0]             to_i,
  input  logic [BytesWidth-1:0]   size_i,
  input  logic [TagWidth-1:0]     tag_i,

  // To the DMA interconnect: the next beat.
  output dma_beat_t               beat_o,
  input  logic                    grant_i,

  // To the engine: destination of this beat's data.
  output logic                    writes_o,
  output logic [31:0]             address_o,   // address to write
  output logic [5:0]              rotation_o,  // upward rotation of the source's bytes
  output logic [BeatBytes-1:0]    strobe_o,
  output logic                    last_o,
  output logic [PaddingWidth-1:0] padding_o,   // beats by which the copy falls short of LeastBeats
  output logic [TagWidth-1:0]     tag_o
);

  localparam int unsigned CountWidth = BytesWidth > 6 ? BytesWidth - 5 : 2;

  typedef logic [CountWidth-1:0] count_t;

  typedef struct packed {
    logic [31:0]           from;
    logic [31:0]           to;
    logic [BytesWidth-1:0] size;
    logic [TagWidth-1:0]   tag;
  } copy_t;

  localparam int unsigned FifoCountWidth = $clog2(Depth + 1);

  copy_t                     copy;
  logic [FifoCountWidth-1:0] unused_count;

  pspin_fifo #(
    .Width($bits(copy_t)),
    .Depth(Depth)
  ) u_copies (
    .clk_i,
    .rst_ni,
    .valid_i,
    .ready_o,
    .data_i ({from_i, to_i, size_i, tag_i}),
    .valid_o(beat_o.valid),
    .ready_i(grant_i && last_o),
    .data_o (copy),
    .count_o(unused_count)
  );

  // Indices of the last word of the source and of the destination, of the last beat, and of this beat.
  count_t     source_last, target_last, last, index_q, target;
  logic       is_behind;  // the realigner lags the source by a word
  logic [5:0] last_byte;

  // A copy without bytes is a beat that writes none.
  function automatic count_t last_word(logic [5:0] offset, logic [BytesWidth-1:0] size);
    return count_t'(((BytesWidth + 1)'(size) + (BytesWidth + 1)'(offset) - (BytesWidth + 1)'(size != '0)) >> 6);
  endfunction

  assign source_last = last_word(copy.from[5:0], copy.size);
  assign target_last = last_word(copy.to[5:0], copy.size);
  assign is_behind   = copy.to[5:0] < copy.from[5:0];
  assign last        = target_last + count_t'(is_behind);
  assign target      = index_q - count_t'(is_behind);
  assign last_byte   = copy.to[5:0] + 6'(copy.size) - 1'b1;

  assign beat_o.reads      = index_q <= source_last;
  assign beat_o.address    = {copy.from[31:6] + 26'(index_q), 6'd0};
  assign beat_o.from       = place_of(copy.from);
  assign beat_o.to         = place_of(copy.to);
  assign beat_o.to_cluster = cluster_of(copy.to);

  assign writes_o   = !is_behind || index_q != '0;
  assign address_o  = {copy.to[31:6] + 26'(target), 6'd0};
  assign rotation_o = copy.to[5:0] - copy.from[5:0];
  assign strobe_o   = {BeatBytes{copy.size != '0}} & ({BeatBytes{1'b1}} << (target == '0 ? copy.to[5:0] : 6'd0))
                    & ({BeatBytes{1'b1}} >> (last_o ? ~last_byte : 6'd0));
  assign last_o     = index_q == last;
  assign padding_o  = last < count_t'(LeastBeats - 1) ? PaddingWidth'(count_t'(LeastBeats - 1) - last) : '0;
  assign tag_o      = copy.tag;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) index_q <= '0;
    else if (grant_i) index_q <= last_o ? '0 : index_q + 1'b1;
  end

endmodule
