// SPDX-License-Identifier: Apache-2.0
// DMA engine of a cluster (PsPIN III-C), and the wide side of its L1. The engine has a queue for packets and one for
// the copies of handlers, and alternates between them, one beat per cycle.
//
// A beat granted by the interconnect in cycle b has a fixed schedule: its word arrives in b + 3, is realigned, and is
// written to its memory in b + Latency - 1. So no stage after the grant ever stalls. A copy whose last beat is granted
// in b has landed in b + Latency, plus the number of beats by which it falls short of LeastBeats.
//
// L1 is used in the cycle after a request to one of its wide ports. Beats of DMA engines, which the interconnect grants
// only without conflict, have priority over those of the NIC-host interconnect, which wait.
module pspin_cluster_dma
  import pspin_pkg::*;
#(
  parameter int unsigned Hpus       = 8,
  parameter int unsigned Tasks      = 20,
  parameter int unsigned Queue      = 8,   // depth of the queue of handlers' copies
  parameter int unsigned Latency    = 10,
  parameter int unsigned LeastBeats = 2,
  parameter int unsigned L1Banks    = 64,
  localparam int unsigned TaskWidth  = Tasks > 1 ? $clog2(Tasks) : 1,
  localparam int unsigned HpuIndex   = Hpus > 1 ? $clog2(Hpus) : 1
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic [ClusterWidth-1:0] cluster_i,

  // CSCHED: packet of a task, of at least one byte; there is always room. Landed: valid from this cycle on.
  input  logic                    packet_valid_i,
  input  logic [31:0]             packet_from_i,
  input  logic [31:0]             packet_to_i,
  input  logic [SizeWidth-1:0]    packet_size_i,
  input  logic [TaskWidth-1:0]    packet_place_i,
  output logic                    landed_valid_o,
  output logic [TaskWidth-1:0]    landed_place_o,

  // HPU drivers: copies of at least one byte, one accepted per cycle. Landed: from this cycle on, the oldest copy of
  // this HPU.
  input  logic [Hpus-1:0]         transfer_valid_i,
  output logic [Hpus-1:0]         transfer_ready_o,
  input  logic [31:0]             transfer_from_i [Hpus],
  input  logic [31:0]             transfer_to_i [Hpus],
  input  logic [31:0]             transfer_size_i [Hpus],
  output logic [Hpus-1:0]         transfer_landed_o,

  // DMA interconnect: next beat of packets and of copies, the preferred one if both can go, the read word, and the data
  // to write, to L1 as well.
  output dma_beat_t [1:0]         beat_o,
  output logic                    beat_turn_o,
  input  logic [1:0]              beat_grant_i,
  input  logic [511:0]            data_i,             // three cycles after its grant
  output logic                    write_valid_o,      // Latency - 3 cycles after its grant
  output beat_request_t           write_o,

  // DMA interconnect: beats of other clusters' engines in this L1.
  input  logic                    other_read_valid_i,
  input  logic [31:0]             other_read_address_i,
  output logic [511:0]            other_read_data_o,  // for the read two cycles before
  input  logic                    other_write_valid_i,
  input  beat_request_t           other_write_i,

  // NIC-host interconnect. Ready depends on the address, and for reads on the write.
  input  logic                    nhi_write_valid_i,
  output logic                    nhi_write_ready_o,
  input  beat_request_t           nhi_write_i,
  input  logic                    nhi_read_valid_i,
  output logic                    nhi_read_ready_o,
  input  logic [31:0]             nhi_read_address_i,
  output logic [511:0]            nhi_read_data_o,    // for the read three cycles before

  // L1: uses its banks in the next cycle. The ports never use the same banks.
  output logic                    wide_write_valid_o,
  output beat_request_t           wide_write_o,
  output logic                    wide_read_valid_o,
  output logic [31:0]             wide_read_address_o,
  input  logic [511:0]            wide_read_data_i    // for the read two cycles before
);

  if (Latency < 8) begin : g_too_fast
    $fatal(1, "accelerator.dma.latency_cycles: the engine needs 8");
  end

  localparam int unsigned PaddingWidth = LeastBeats > 1 ? $clog2(LeastBeats) : 1;
  localparam int unsigned TimerCycles  = Latency + LeastBeats - 1;
  localparam int unsigned L1Groups     = L1Banks * 4 > BeatBytes ? L1Banks * 4 / BeatBytes : 1;
  localparam int unsigned Packets      = 0;
  localparam int unsigned Handlers     = 1;

  // ---- One HPU per cycle passes its copy.
  logic                transfer_valid, transfer_ready;
  logic [HpuIndex-1:0] transfer_hpu;

  pspin_rr_arbiter #(
    .N(Hpus)
  ) u_transfers (
    .clk_i,
    .rst_ni,
    .requests_i(transfer_valid_i),
    .take_i    (transfer_ready),
    .valid_o   (transfer_valid),
    .index_o   (transfer_hpu)
  );

  assign transfer_ready_o = Hpus'(transfer_ready) << transfer_hpu;

  // ---- The two queues.
  typedef struct packed {
    logic                 of_handler;
    logic                 reads;
    logic                 writes;
    logic [5:0]           rotation;
    logic [BeatBytes-1:0] strobe;
    logic [31:0]          address;
  } beat_t;

  logic [1:0]                           granted, writes, last;
  logic [1:0][31:0]                     address;
  logic [1:0][5:0]                      rotation;
  logic [1:0][BeatBytes-1:0]            strobe;
  logic [1:0][PaddingWidth-1:0]         padding;
  logic [TaskWidth-1:0]                 place;
  logic [HpuIndex-1:0]                  hpu;
  logic                                 unused_ready;

  assign granted = beat_grant_i;

  pspin_dma_queue #(
    .Depth     (Tasks),
    .BytesWidth(SizeWidth),
    .TagWidth  (TaskWidth),
    .LeastBeats(LeastBeats)
  ) u_packets (
    .clk_i,
    .rst_ni,
    .valid_i   (packet_valid_i),
    .ready_o   (unused_ready),
    .from_i    (packet_from_i),
    .to_i      (packet_to_i),
    .size_i    (packet_size_i),
    .tag_i     (packet_place_i),
    .beat_o    (beat_o[Packets]),
    .grant_i   (granted[Packets]),
    .writes_o  (writes[Packets]),
    .address_o (address[Packets]),
    .rotation_o(rotation[Packets]),
    .strobe_o  (strobe[Packets]),
    .last_o    (last[Packets]),
    .padding_o (padding[Packets]),
    .tag_o     (place)
  );

  pspin_dma_queue #(
    .Depth     (Queue),
    .BytesWidth(32),
    .TagWidth  (HpuIndex),
    .LeastBeats(LeastBeats)
  ) u_handlers (
    .clk_i,
    .rst_ni,
    .valid_i   (transfer_valid),
    .ready_o   (transfer_ready),
    .from_i    (transfer_from_i[transfer_hpu]),
    .to_i      (transfer_to_i[transfer_hpu]),
    .size_i    (transfer_size_i[transfer_hpu]),
    .tag_i     (transfer_hpu),
    .beat_o    (beat_o[Handlers]),
    .grant_i   (granted[Handlers]),
    .writes_o  (writes[Handlers]),
    .address_o (address[Handlers]),
    .rotation_o(rotation[Handlers]),
    .strobe_o  (strobe[Handlers]),
    .last_o    (last[Handlers]),
    .padding_o (padding[Handlers]),
    .tag_o     (hpu)
  );

  logic is_granted, which;
  assign is_granted = |granted;
  assign which      = granted[Handlers];

  // The queue that was not used last has priority.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) beat_turn_o <= 1'b0;
    else if (is_granted) beat_turn_o <= !which;
  end

  // ---- Landing times of copies: those of a queue never coincide.
  function automatic logic [TimerCycles-1:0] timer(logic starts, logic [PaddingWidth-1:0] more);
    return TimerCycles'(starts) << (Latency - 1 + 32'(more));
  endfunction

  logic [TimerCycles-1:0] packet_timer_q, handler_timer_q, packet_starts, handler_starts;
  logic [TaskWidth-1:0]   place_q [TimerCycles];
  logic [HpuIndex-1:0]    hpu_q [TimerCycles];

  assign packet_starts  = timer(granted[Packets] && last[Packets], padding[Packets]);
  assign handler_starts = timer(granted[Handlers] && last[Handlers], padding[Handlers]);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      packet_timer_q  <= '0;
      handler_timer_q <= '0;
    end else begin
      packet_timer_q  <= packet_timer_q >> 1 | packet_starts;
      handler_timer_q <= handler_timer_q >> 1 | handler_starts;
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < TimerCycles; i++) begin
      if (packet_starts[i]) place_q[i] <= place;
      else if (i + 1 < TimerCycles) place_q[i] <= place_q[(i + 1) % TimerCycles];
      if (handler_starts[i]) hpu_q[i] <= hpu;
      else if (i + 1 < TimerCycles) hpu_q[i] <= hpu_q[(i + 1) % TimerCycles];
    end
  end

  assign landed_valid_o    = packet_timer_q[0];
  assign landed_place_o    = place_q[0];
  assign transfer_landed_o = Hpus'(handler_timer_q[0]) << hpu_q[0];

  // ---- Cycles b + 1 to b + 4: read the word, in b + 2 if it is in this L1.
  beat_t        beat, here;
  logic         here_valid, is_own, own_read_valid_q, unused_empty;
  logic [31:0]  own_address_q;
  logic [3:1]   own_q;
  logic [511:0] word_q;

  assign beat = '{
      of_handler: which,
      reads:      beat_o[which].reads,
      writes:     writes[which],
      rotation:   rotation[which],
      strobe:     strobe[which],
      address:    address[which]};
  assign is_own = beat_o[which].from == PlaceL1 && cluster_of(beat_o[which].address) == cluster_i;

  pspin_delay #(
    .Width ($bits(beat_t)),
    .Cycles(4)
  ) u_here (
    .clk_i,
    .rst_ni,
    .valid_i(is_granted),
    .data_i (beat),
    .valid_o(here_valid),
    .data_o (here),
    .empty_o(unused_empty)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) own_read_valid_q <= 1'b0;
    else own_read_valid_q <= is_granted && is_own && beat.reads;
  end

  always_ff @(posedge clk_i) begin
    own_address_q <= beat_o[which].address;
    own_q         <= {own_q[2:1], is_own};
    word_q        <= own_q[3] ? wide_read_data_i : data_i;
  end

  // ---- Cycle b + 4: shift bytes to their position. Those of the destination's next word wait for the next beat of the
  // same queue.
  logic [511:0] rotated, merged, rest_q [2];

  always_comb begin
    rotated = word_q;
    for (int unsigned i = 0; i < 6; i++) begin
      if (here.rotation[i]) rotated = rotated << (8 << i) | rotated >> (512 - (8 << i));
    end
    for (int unsigned i = 0; i < BeatBytes; i++) begin
      merged[i*8+:8] = 6'(i) < here.rotation ? rest_q[here.of_handler][i*8+:8] : rotated[i*8+:8];
    end
  end

  always_ff @(posedge clk_i) if (here_valid && here.reads) rest_q[here.of_handler] <= rotated;

  // ---- Cycles b + 5 to b + Latency - 3: transport to the destination; to this L1 one cycle more, which others spend
  // between clusters.
  logic          unused_empty_write;
  beat_request_t own_write;
  logic          own_write_valid, is_to_own, unused_empty_own;

  pspin_delay #(
    .Width ($bits(beat_request_t)),
    .Cycles(Latency - 7)
  ) u_write (
    .clk_i,
    .rst_ni,
    .valid_i(here_valid && here.writes),
    .data_i ({here.address, here.strobe, merged}),
    .valid_o(write_valid_o),
    .data_o (write_o),
    .empty_o(unused_empty_write)
  );

  assign is_to_own = place_of(write_o.address) == PlaceL1 && cluster_of(write_o.address) == cluster_i;

  pspin_delay #(
    .Width ($bits(beat_request_t)),
    .Cycles(1)
  ) u_own_write (
    .clk_i,
    .rst_ni,
    .valid_i(write_valid_o && is_to_own),
    .data_i (write_o),
    .valid_o(own_write_valid),
    .data_o (own_write),
    .empty_o(unused_empty_own)
  );

  // ---- The wide ports of L1.
  function automatic logic same_group(logic [31:0] one, logic [31:0] other);
    return (one / BeatBytes) % L1Groups == (other / BeatBytes) % L1Groups;
  endfunction

  logic          dma_write_valid, dma_read_valid;
  logic [31:0]   dma_read_address;
  beat_request_t dma_write;

  assign dma_write_valid  = own_write_valid || other_write_valid_i;
  assign dma_write        = own_write_valid ? own_write : other_write_i;
  assign dma_read_valid   = own_read_valid_q || other_read_valid_i;
  assign dma_read_address = own_read_valid_q ? own_address_q : other_read_address_i;

  assign nhi_write_ready_o = !dma_write_valid && !(dma_read_valid && same_group(dma_read_address, nhi_write_i.address));
  assign wide_write_valid_o = dma_write_valid || (nhi_write_valid_i && nhi_write_ready_o);
  assign wide_write_o       = dma_write_valid ? dma_write : nhi_write_i;

  // A stalled write does not stall reads.
  assign nhi_read_ready_o = !dma_read_valid && !(wide_write_valid_o && same_group(wide_write_o.address, nhi_read_address_i));

  assign wide_read_valid_o   = dma_read_valid || (nhi_read_valid_i && nhi_read_ready_o);
  assign wide_read_address_o = dma_read_valid ? dma_read_address : nhi_read_address_i;

  assign other_read_data_o = wide_read_data_i;

  always_ff @(posedge clk_i) nhi_read_data_o <= wide_read_data_i;

endmodule
