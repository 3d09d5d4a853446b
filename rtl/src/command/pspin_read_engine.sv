// SPDX-License-Identifier: Apache-2.0
// Reads ranges of memory beat by beat, for the outbound engine and the off-cluster DMA engine (PsPIN III-C, Flows 3 and
// 4). The output is a stream of full beats that starts with the first byte of the range.
//
// A beat accepted by the memory in cycle c is at the output in c + ReadCycles + 1. The engine only requests beats that
// fit into its buffer, so it never refuses data.
module pspin_read_engine
  import pspin_pkg::*;
#(
  parameter int unsigned ReadCycles = 4,  // latency of the model, from the cycle after a beat is accepted
  parameter int unsigned L1Gap      = 0,  // cycles after a range in L1
  parameter int unsigned L2Gap      = 0,  // and after one in L2
  parameter int unsigned L1Turn     = 1,  // cycles after a range in L1 if the next one is in another memory
  parameter int unsigned L2Turn     = 0,  // and after one in L2
  parameter int unsigned Depth      = 8   // requested beats that have not left
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  // From the engine: a range stays until its last beat is requested; begins_o marks the request of the first one.
  input  logic         range_valid_i,
  output logic         range_ready_o,
  input  range_t       range_i,
  output logic         begins_o,

  // To pspin_nhi, and its data, in order.
  output logic         read_valid_o,
  input  logic         read_ready_i,
  output logic [31:0]  read_address_o,
  input  logic         read_rvalid_i,
  input  logic [511:0] read_data_i,

  // To the engine: the last beat of a range is at the output in the next cycle, unless others wait there.
  output logic         arrives_o,

  // To the engine: beats of the range. ends_o: all of the range is read.
  output logic         data_valid_o,
  input  logic         data_ready_i,
  output logic [511:0] data_o,
  output logic [6:0]   bytes_o,
  output logic         first_o,
  output logic         last_o,
  output logic         ends_o,

  output logic         empty_o   // no range in progress
);

  // The interconnect and the queue of data take four of the cycles.
  if (ReadCycles < 4) begin : g_check
    $fatal(1, "data of commands takes four cycles at least");
  end

  //////////////
  // Requests //
  //////////////

  localparam int unsigned TurnWidth = $clog2((L1Turn > L2Turn ? L1Turn : L2Turn) + 2);
  localparam int unsigned GapWidth  = $clog2((L1Gap > L2Gap ? L1Gap : L2Gap) + 2);

  // Information about a beat for the realigner.
  typedef struct packed {
    logic       first;
    logic       last;
    logic       is_empty;  // a range without bytes
    logic [5:0] offset;    // offset of the range's first byte in its beat
    logic [6:0] up_to;     // end of the range in its last beat
  } tag_t;

  logic                    has_room, takes, is_last, is_same, may_begin;
  logic [31:0]             left_q, left, next_q, address;
  logic [TurnWidth-1:0]    turn_q;
  logic [GapWidth-1:0]     gap_q;
  place_e                  place, place_q;      // memory of this range, and of the one before
  logic [ClusterWidth-1:0] cluster, cluster_q;  // cluster, if in L1
  logic [5:0]              final_byte;
  tag_t                    tag;

  assign left           = left_q == '0 ? beats_of(range_i) : left_q;
  assign address        = left_q == '0 ? {range_i.address[31:6], 6'b0} : next_q;
  assign is_last        = left == 32'd1;
  assign place          = place_of(range_i.address);
  assign cluster        = cluster_of(range_i.address);
  assign is_same        = place == place_q && (place != PlaceL1 || cluster == cluster_q);
  assign may_begin      = gap_q == '0 && (turn_q == '0 || is_same);
  assign read_valid_o   = range_valid_i && has_room && (left_q != '0 || may_begin);
  assign read_address_o = address;
  assign takes          = read_valid_o && read_ready_i;
  assign range_ready_o  = takes && is_last;
  assign begins_o       = takes && left_q == '0;
  assign final_byte     = range_i.address[5:0] + range_i.size[5:0] - 6'd1;

  always_comb begin
    tag.first    = left_q == '0;
    tag.last     = is_last;
    tag.is_empty = range_i.size == '0;
    tag.offset   = range_i.address[5:0];
    tag.up_to    = 7'(final_byte) + 7'd1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      left_q <= '0;
      gap_q  <= '0;
      turn_q <= '0;
    end else begin
      if (takes) left_q <= left - 1'b1;
      if (range_ready_o) begin
        gap_q  <= range_i.address >= HandlerStart ? GapWidth'(L2Gap) : GapWidth'(L1Gap);
        turn_q <= range_i.address >= HandlerStart ? TurnWidth'(L2Turn) : TurnWidth'(L1Turn);
      end else begin
        if (gap_q != '0) gap_q <= gap_q - 1'b1;
        if (turn_q != '0) turn_q <= turn_q - 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (takes) next_q <= address + 32'(BeatBytes);
    if (range_ready_o) place_q <= place;
    if (range_ready_o) cluster_q <= cluster;
  end

  //////////
  // Data //
  //////////

  localparam int unsigned CountWidth = $clog2(Depth + 1);

  logic                  pop, arrives, way_empty, all_credits, tag_valid, tag_ready, in_valid, in_ready;
  logic [511:0]          arriving, in;
  logic [CountWidth-1:0] credits, tags, beats;
  tag_t                  expected, in_tag;

  pspin_credit #(
    .Credits(Depth)
  ) u_room (
    .clk_i,
    .rst_ni,
    .take_i     (takes),
    .give_i     (pop),
    .available_o(has_room),
    .all_o      (all_credits),
    .count_o    (credits)
  );

  pspin_delay #(
    .Width (512),
    .Cycles(ReadCycles - 4)
  ) u_way (
    .clk_i,
    .rst_ni,
    .valid_i(read_rvalid_i),
    .data_i (read_data_i),
    .valid_o(arrives),
    .data_o (arriving),
    .empty_o(way_empty)
  );

  pspin_fifo #(
    .Width($bits(tag_t)),
    .Depth(Depth)
  ) u_tags (
    .clk_i,
    .rst_ni,
    .valid_i(takes),
    .ready_o(tag_ready),
    .data_i (tag),
    .valid_o(tag_valid),
    .ready_i(arrives),
    .data_o (expected),
    .count_o(tags)
  );

  pspin_fifo #(
    .Width($bits(tag_t) + 512),
    .Depth(Depth)
  ) u_data (
    .clk_i,
    .rst_ni,
    .valid_i(arrives),
    .ready_o(in_ready),
    .data_i ({expected, arriving}),
    .valid_o(in_valid),
    .ready_i(pop),
    .data_o ({in_tag, in}),
    .count_o(beats)
  );

  assign arrives_o = arrives && expected.last;
  assign empty_o   = all_credits && !range_valid_i;

  // Credits make the other counts redundant.
  logic unused;
  assign unused = ^{way_empty, tag_valid, tag_ready, in_ready, credits, tags, beats};

  ///////////////
  // Realigner //
  ///////////////

  // An output beat consists of the end of the previous beat and the beginning of this one. The last beat also has its
  // own end, which follows alone if it does not fit.
  logic         started_q, tail_q, produces, has_tail, is_alone, is_final, leaves;
  logic [511:0] before_q;

  assign is_alone     = in_tag.first || in_tag.offset == '0 || tail_q;
  assign produces     = is_alone ? in_tag.last || in_tag.offset == '0 : 1'b1;
  assign has_tail     = in_tag.last && !is_alone && in_tag.up_to > 7'(in_tag.offset);
  assign is_final     = in_tag.last && !has_tail;
  assign data_o       = 512'({is_alone ? 512'b0 : in, is_alone ? in : before_q} >> {in_tag.offset, 3'b000});
  assign data_valid_o = in_valid && produces;
  assign leaves       = data_valid_o && data_ready_i;
  assign pop          = in_valid && (!produces || (data_ready_i && !has_tail));
  assign first_o      = !started_q;
  assign last_o       = is_final;
  assign ends_o       = in_tag.last && !tail_q;

  always_comb begin
    bytes_o = 7'(BeatBytes);
    if (is_final) bytes_o = in_tag.up_to - 7'(in_tag.offset) + (is_alone ? 7'd0 : 7'(BeatBytes));
    if (in_tag.is_empty) bytes_o = '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      started_q <= 1'b0;
      tail_q    <= 1'b0;
    end else if (leaves) begin
      started_q <= !is_final;
      tail_q    <= has_tail;
    end
  end

  always_ff @(posedge clk_i) begin
    if (pop) before_q <= in;
  end

endmodule
