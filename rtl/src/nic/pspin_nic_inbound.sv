// SPDX-License-Identifier: Apache-2.0
// Inbound engine of a NIC (PsPIN III-A, Flow 1): writes packets of the network into the packet buffer, requests
// handlers from the unit, and frees packets when the unit finishes. Packets without a matching rule go to the host.
//
// A packet holds a slot of the packet buffer from its first beat on, and a message number from its last one on, so that
// a bad or long packet leaves no trace. Its request follows WriteCycles + 1 cycles after its last beat is accepted,
// when all of it is in L2.
//
// Each message has a private queue of the unit. If two shared one, the request of the second could wait for the end of
// the first, whose packets are behind that request.
module pspin_nic_inbound
  import pspin_pkg::*;
#(
  parameter int unsigned Rules       = 4,
  parameter int unsigned Slots       = 64,
  parameter int unsigned SlotBytes   = 2048,           // largest packet; a multiple of a beat
  parameter logic [31:0] SlotsAt     = 32'h1C40_0000,  // address in the packet buffer
  parameter int unsigned MessageIds  = 64,             // at most the unit's number of queues
  parameter int unsigned WriteCycles = 4,
  localparam int unsigned RuleWidth = Rules > 1 ? $clog2(Rules) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // From the driver.
  input  logic                 rule_write_i,
  input  logic [RuleWidth-1:0] rule_index_i,
  input  nic_rule_t            rule_i,

  // From the network: AXI-Stream, byte 0 first. user marks a bad packet with its last beat.
  input  logic                 rx_valid_i,
  output logic                 rx_ready_o,
  input  logic [511:0]         rx_data_i,
  input  logic [63:0]          rx_keep_i,
  input  logic                 rx_last_i,
  input  logic                 rx_user_i,

  // To the host: packets without a matching rule.
  output logic                 other_valid_o,
  input  logic                 other_ready_i,
  output logic [511:0]         other_data_o,
  output logic [63:0]          other_keep_o,
  output logic                 other_last_o,
  output logic                 other_user_o,

  // To the unit: beats of packets, requests, and finished packets.
  output logic                 write_valid_o,
  input  logic                 write_ready_i,
  output beat_request_t        write_o,
  output logic                 her_valid_o,
  input  logic                 her_ready_i,
  output her_t                 her_o,
  input  logic                 feedback_valid_i,
  output logic                 feedback_ready_o,
  input  feedback_t            feedback_i,

  // To counters, in the cycle of a packet's last beat: stored for the unit, sent to the host, or dropped.
  output logic                 stored_o,
  output logic                 other_o,
  output logic                 dropped_o,
  output logic                 empty_o           // nothing inside, and the unit has no packet
);

  localparam int unsigned PlaceWidth = Slots > 1 ? $clog2(Slots) : 1;
  localparam int unsigned IdWidth    = MessageIds > 1 ? $clog2(MessageIds) : 1;
  localparam int unsigned Beats      = SlotBytes / BeatBytes;
  localparam int unsigned BeatWidth  = $clog2(Beats + 1);
  localparam int unsigned UsedWidth  = $clog2(Slots + 1);
  localparam int unsigned Waiting    = 2 * WriteCycles;  // pending requests; enough for one per cycle

  if (SlotBytes % BeatBytes != 0 || SlotBytes >= 2**SizeWidth) begin : g_check
    $fatal(1, "a slot has whole beats, and its size is that of a packet");
  end

  /////////////
  // Network //
  /////////////

  typedef struct packed {
    logic [511:0] data;
    logic [63:0]  keep;
    logic         last;
    logic         is_bad;
  } beat_t;

  beat_t      beat;
  logic       beat_valid, beat_take;
  logic [1:0] unused_count;

  pspin_fifo #(
    .Width($bits(beat_t)),
    .Depth(2)
  ) u_rx (
    .clk_i,
    .rst_ni,
    .valid_i(rx_valid_i),
    .ready_o(rx_ready_o),
    .data_i ({rx_data_i, rx_keep_i, rx_last_i, rx_user_i}),
    .valid_o(beat_valid),
    .ready_i(beat_take),
    .data_o (beat),
    .count_o(unused_count)
  );

  //////////////////////////////
  // Flows, slots and numbers //
  //////////////////////////////

  logic                    match, packet_valid, packet_eom, packet_take;
  logic [RuleWidth-1:0]    match_rule, rule, rule_q;
  logic [IdWidth-1:0]      packet_message, id, done_id;
  logic [ContextWidth-1:0] packet_context;
  logic [SizeWidth-1:0]    packet_transfer;
  logic                    id_valid, id_take, id_give, slot_valid;
  logic [PlaceWidth-1:0]    slot;

  pspin_nic_flows #(
    .Rules  (Rules),
    .IdWidth(IdWidth)
  ) u_flows (
    .clk_i,
    .rst_ni,
    .rule_write_i,
    .rule_index_i,
    .rule_i,
    .header_i         (beat.data),
    .keep_i           (beat.keep),
    .match_o          (match),
    .match_rule_o     (match_rule),
    .packet_rule_i    (rule),
    .packet_take_i    (packet_take),
    .packet_valid_o   (packet_valid),
    .packet_message_o (packet_message),
    .packet_eom_o     (packet_eom),
    .packet_context_o (packet_context),
    .packet_transfer_o(packet_transfer),
    .id_valid_i       (id_valid),
    .id_take_o        (id_take),
    .id_i             (id)
  );

  pspin_nic_pool #(
    .Count(MessageIds)
  ) u_ids (
    .clk_i,
    .rst_ni,
    .valid_o (id_valid),
    .take_i  (id_take),
    .number_o(id),
    .give_i  (id_give),
    .given_i (done_id)
  );

  // A packet takes its slot with its last beat; a dropped packet leaves the slot to the next.
  pspin_nic_pool #(
    .Count(Slots)
  ) u_slots (
    .clk_i,
    .rst_ni,
    .valid_o (slot_valid),
    .take_i  (packet_take),
    .number_o(slot),
    .give_i  (feedback_valid_i),
    .given_i (PlaceWidth'(feedback_i.user))
  );

  /////////////
  // Packets //
  /////////////

  typedef enum logic [1:0] {
    ToUnit,
    ToHost,
    Dropped  // remainder of a packet that is too long
  } way_e;

  way_e                 way, way_q;
  logic                 is_first_q, has_room, waiting_ready;
  logic [BeatWidth-1:0] index, index_q;
  logic [SizeWidth-1:0] size;
  her_t                 her;

  assign index = is_first_q ? '0 : index_q;
  assign rule  = is_first_q ? match_rule : rule_q;

  always_comb begin
    way = way_q;
    if (is_first_q) way = match ? ToUnit : ToHost;
    // Stop writing a packet that is bad or exceeds its slot.
    if (way == ToUnit && (index == BeatWidth'(Beats) || (beat.last && beat.is_bad))) way = Dropped;
  end

  // The last beat needs room for the request, and a message.
  assign has_room       = slot_valid && (!beat.last || (waiting_ready && packet_valid));
  assign write_valid_o  = beat_valid && way == ToUnit && has_room;
  assign other_valid_o = beat_valid && way == ToHost;
  assign packet_take    = write_valid_o && write_ready_i && beat.last;

  always_comb begin
    unique case (way)
      ToUnit:  beat_take = has_room && write_ready_i;
      ToHost:  beat_take = other_ready_i;
      default: beat_take = 1'b1;
    endcase
  end

  assign other_data_o = beat.data;
  assign other_keep_o = beat.keep;
  assign other_last_o = beat.last;
  assign other_user_o = beat.is_bad;

  always_comb begin
    write_o.address = SlotsAt + 32'(slot) * SlotBytes + 32'(index) * BeatBytes;
    write_o.strobe  = beat.keep;
    write_o.wdata   = beat.data;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) is_first_q <= 1'b1;
    else if (beat_valid && beat_take) is_first_q <= beat.last;
  end

  always_ff @(posedge clk_i) begin
    if (beat_valid && beat_take) begin
      way_q   <= way;
      rule_q  <= rule;
      index_q <= index + BeatWidth'(way == ToUnit);
    end
  end

  assign stored_o  = packet_take;
  assign other_o   = other_valid_o && other_ready_i && beat.last;
  assign dropped_o = beat_valid && way == Dropped && beat.last;

  //////////////
  // Requests //
  //////////////

  assign size = SizeWidth'(32'(index) * BeatBytes + $countones(beat.keep));

  always_comb begin
    her.message           = 32'(packet_message);
    her.flow              = 32'(rule);
    her.eom               = packet_eom;
    her.address           = SlotsAt + 32'(slot) * SlotBytes;
    her.size              = size;
    her.transfer          = size < packet_transfer ? size : packet_transfer;
    her.execution_context = packet_context;
    her.user              = 32'(slot);
  end

  logic unused_waiting;

  pspin_fallthrough #(
    .Width ($bits(her_t)),
    .Depth (Waiting),
    .Cycles(WriteCycles + 1)
  ) u_waiting (
    .clk_i,
    .rst_ni,
    .valid_i(packet_take),
    .ready_o(waiting_ready),
    .data_i (her),
    .valid_o(her_valid_o),
    .ready_i(her_ready_i),
    .data_o (her_o),
    .empty_o(unused_waiting)
  );

  //////////////
  // Feedback //
  //////////////

  // Stored, unfinished packets of each message, and whether the last packet is among them or finished. At zero with the
  // last one finished, the number is free; the unit has no packet of it, regardless of the message's end.
  logic [UsedWidth-1:0]  used_q [MessageIds];
  logic [MessageIds-1:0] ended_q;
  logic [UsedWidth-1:0]  all_q;

  assign feedback_ready_o = 1'b1;
  assign done_id          = IdWidth'(feedback_i.message);
  assign id_give          = feedback_valid_i && ended_q[done_id] && used_q[done_id] == UsedWidth'(1);
  assign empty_o          = all_q == '0 && !beat_valid && is_first_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < MessageIds; i++) used_q[i] <= '0;
      ended_q <= '0;
      all_q   <= '0;
    end else begin
      for (int unsigned i = 0; i < MessageIds; i++) begin
        used_q[i] <= used_q[i] + UsedWidth'(packet_take && packet_message == IdWidth'(i))
                   - UsedWidth'(feedback_valid_i && done_id == IdWidth'(i));
      end
      if (id_give) ended_q[done_id] <= 1'b0;
      if (packet_take && packet_eom) ended_q[packet_message] <= 1'b1;
      all_q <= all_q + UsedWidth'(packet_take) - UsedWidth'(feedback_valid_i);
    end
  end

  // The end of handlers in the feedback concerns only the host.
  logic unused;
  assign unused = ^feedback_i;

endmodule
