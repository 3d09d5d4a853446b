// SPDX-License-Identifier: Apache-2.0
// Inbound engine of a NIC (PsPIN III-A, Flow 1): writes packets of the network into the packet buffer, requests
// handlers from the unit, and frees packets when the unit finishes.
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
  parameter int unsigned Rulesets    = 4,
  parameter int unsigned Slots       = 64,
  parameter int unsigned SlotBytes   = 2048,           // largest packet; a multiple of a beat
  parameter logic [31:0] SlotsAt     = 32'h1C40_0000,  // address in the packet buffer
  parameter int unsigned MessageIds  = 64,             // at most the unit's number of queues
  parameter int unsigned WriteCycles = 4,
  localparam int unsigned SetWidth = Rulesets > 1 ? $clog2(Rulesets) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // From the network: AXI-Stream, byte 0 first, with the verdict of pspin_nic_match in each beat. user marks a bad
  // packet with its last beat.
  input  logic                 rx_valid_i,
  output logic                 rx_ready_o,
  input  logic [511:0]         rx_data_i,
  input  logic [63:0]          rx_keep_i,
  input  logic                 rx_last_i,
  input  logic                 rx_user_i,
  input  nic_match_t           rx_match_i,

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

  // To counters, in the cycle of a packet's last beat: stored for the unit, or dropped.
  output logic                 stored_o,
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
    nic_match_t   match;
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
    .data_i ({rx_data_i, rx_keep_i, rx_last_i, rx_user_i, rx_match_i}),
    .valid_o(beat_valid),
    .ready_i(beat_take),
    .data_o (beat),
    .count_o(unused_count)
  );

  //////////////////////////////
  // Flows, slots and numbers //
  //////////////////////////////

  logic                    packet_valid, packet_take;
  logic [IdWidth-1:0]      packet_message, id, done_id;
  logic                    id_valid, id_take, id_give, slot_valid;
  logic [PlaceWidth-1:0]    slot;

  pspin_nic_flows #(
    .Rulesets(Rulesets),
    .IdWidth (IdWidth)
  ) u_flows (
    .clk_i,
    .rst_ni,
    .packet_set_i    (SetWidth'(beat.match.ruleset)),
    .packet_eom_i    (beat.match.eom),
    .packet_take_i   (packet_take),
    .packet_valid_o  (packet_valid),
    .packet_message_o(packet_message),
    .id_valid_i      (id_valid),
    .id_take_o       (id_take),
    .id_i            (id)
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

  // The remainder of a packet that is bad or too long is not written.
  logic                 drops, drops_q;
  logic                 is_first_q, has_room, waiting_ready;
  logic [BeatWidth-1:0] index, index_q;
  logic [SizeWidth-1:0] size;
  her_t                 her;

  assign index = is_first_q ? '0 : index_q;
  assign drops = (!is_first_q && drops_q) || index == BeatWidth'(Beats) || (beat.last && beat.is_bad);

  // The last beat needs room for the request, and a message.
  assign has_room      = slot_valid && (!beat.last || (waiting_ready && packet_valid));
  assign write_valid_o = beat_valid && !drops && has_room;
  assign packet_take   = write_valid_o && write_ready_i && beat.last;
  assign beat_take     = drops || (has_room && write_ready_i);

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
      drops_q <= drops;
      index_q <= index + BeatWidth'(!drops);
    end
  end

  assign stored_o  = packet_take;
  assign dropped_o = beat_valid && drops && beat.last;

  //////////////
  // Requests //
  //////////////

  assign size = SizeWidth'(32'(index) * BeatBytes + $countones(beat.keep));

  always_comb begin
    her.message           = 32'(packet_message);
    her.flow              = 32'(beat.match.ruleset);
    her.eom               = beat.match.eom;
    her.address           = SlotsAt + 32'(slot) * SlotBytes;
    her.size              = size;
    her.transfer          = size < beat.match.transfer ? size : beat.match.transfer;
    her.execution_context = beat.match.execution_context;
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
      if (packet_take && beat.match.eom) ended_q[packet_message] <= 1'b1;
      all_q <= all_q + UsedWidth'(packet_take) - UsedWidth'(feedback_valid_i);
    end
  end

  // The end of handlers in the feedback concerns only the host.
  logic unused;
  assign unused = ^feedback_i;

endmodule
