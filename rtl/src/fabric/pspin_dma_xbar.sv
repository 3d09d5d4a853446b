// SPDX-License-Identifier: Apache-2.0
// Interconnect of the clusters' DMA engines (PsPIN III-C). Each direction of each L2 memory and of each L1 carries one
// beat per cycle for all engines together. Clusters are served round robin; each moves a beat from the queue that it
// did not use last, or from the other one if that queue's channel is taken. A cluster whose word is in a busy bank is
// skipped.
//
// A beat granted in cycle b reads L2, or requests from another cluster's L1, in b and b + 1, and its word returns in b
// + 3. Writes to memories other than the engine's own L1 also pass through here.
module pspin_dma_xbar
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters      = 4,
  parameter int unsigned PacketGroups  = 32,
  parameter int unsigned HandlerGroups = 4,
  parameter int unsigned L1Groups      = 4,
  localparam int unsigned IndexWidth   = Clusters > 1 ? $clog2(Clusters) : 1
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  // The engines of the clusters.
  input  dma_beat_t [1:0]           beat_i [Clusters],
  input  logic [Clusters-1:0]       beat_turn_i,
  output logic [1:0]                beat_grant_o [Clusters],
  output logic [511:0]              data_o [Clusters],
  input  logic [Clusters-1:0]       write_valid_i,
  input  beat_request_t             write_i [Clusters],

  // The L1 of the clusters, for the engines of others.
  output logic [Clusters-1:0]       other_read_valid_o,
  output logic [31:0]               other_read_address_o [Clusters],
  input  logic [511:0]              other_read_data_i [Clusters],
  output logic [Clusters-1:0]       other_write_valid_o,
  output beat_request_t             other_write_o [Clusters],

  // Port B of the L2 packet buffer.
  input  logic [PacketGroups-1:0]   packet_busy_i,
  output logic                      packet_read_valid_o,
  output logic [31:0]               packet_read_address_o,
  input  logic [511:0]              packet_read_data_i,
  output logic                      packet_write_valid_o,
  output beat_request_t             packet_write_o,

  // Port B of the L2 handler memory.
  input  logic [HandlerGroups-1:0]  handler_busy_i,
  output logic                      handler_read_valid_o,
  output logic [31:0]               handler_read_address_o,
  input  logic [511:0]              handler_read_data_i,
  output logic                      handler_write_valid_o,
  output beat_request_t             handler_write_o
);

  localparam logic [IndexWidth-1:0] Last = IndexWidth'(Clusters - 1);

  typedef logic [IndexWidth-1:0] index_t;

  // Channels that a beat needs.
  typedef struct packed {
    logic                packet_read;
    logic                packet_write;
    logic                handler_read;
    logic                handler_write;
    logic [Clusters-1:0] l1_read;
    logic [Clusters-1:0] l1_write;
  } channels_t;

  // ---- Channels needed by each beat, and whether its word can be read in this cycle.
  logic [L1Groups-1:0] l1_busy [Clusters];
  channels_t [1:0]     needs [Clusters];
  logic [1:0]          is_taken [Clusters];

  function automatic int unsigned beat_of(logic [31:0] address, logic [31:0] start);
    return (address - start) / BeatBytes;
  endfunction

  // An engine's write to an L1 in flight now arrives when a word granted now could be read.
  always_comb begin
    for (int unsigned i = 0; i < Clusters; i++) l1_busy[i] = '0;
    for (int unsigned i = 0; i < Clusters; i++) begin
      if (write_valid_i[i] && place_of(write_i[i].address) == PlaceL1) begin
        l1_busy[index_t'(cluster_of(write_i[i].address))][beat_of(write_i[i].address, L1Start) % L1Groups] = 1'b1;
      end
    end
  end

  for (genvar i = 0; i < Clusters; i++) begin : g_cluster
    for (genvar j = 0; j < 2; j++) begin : g_queue
      place_e      from, to;
      logic        reads, is_busy;
      logic [31:0] address;
      index_t      owner;

      assign from    = beat_i[i][j].from;
      assign to      = beat_i[i][j].to;
      assign reads   = beat_i[i][j].reads;
      assign address = beat_i[i][j].address;
      assign owner   = index_t'(cluster_of(address));

      assign needs[i][j] = '{
          packet_read:   from == PlacePacket,
          packet_write:  to == PlacePacket,
          handler_read:  from == PlaceHandler,
          handler_write: to == PlaceHandler,
          l1_read:       Clusters'(from == PlaceL1 && reads) << owner,
          l1_write:      Clusters'(to == PlaceL1) << beat_i[i][j].to_cluster};

      always_comb begin
        unique case (from)
          PlacePacket:  is_busy = packet_busy_i[beat_of(address, PacketStart) % PacketGroups];
          PlaceHandler: is_busy = handler_busy_i[beat_of(address, HandlerStart) % HandlerGroups];
          PlaceL1:      is_busy = l1_busy[owner][beat_of(address, L1Start) % L1Groups];
          default:      is_busy = 1'b0;
        endcase
      end

      assign is_taken[i][j] = reads && is_busy;
    end
  end

  // ---- Choice: clusters from the one after the latest first one.
  index_t              next_q, first;
  logic                any;
  logic [Clusters-1:0] chosen;  // for each, the beat of a handler
  logic [Clusters-1:0] granted;

  always_comb begin
    channels_t taken;
    taken   = '0;
    any     = 1'b0;
    first   = next_q;
    granted = '0;
    chosen  = '0;
    for (int unsigned i = 0; i < Clusters; i++) begin
      logic [1:0] can_go;
      index_t     index;
      index = index_t'((32'(next_q) + i) % Clusters);
      for (int unsigned j = 0; j < 2; j++) can_go[j] = beat_i[index][j].valid && (needs[index][j] & taken) == '0;
      chosen[index]  = can_go[beat_turn_i[index]] ? beat_turn_i[index] : !beat_turn_i[index];
      granted[index] = |can_go && !is_taken[index][chosen[index]];
      if (granted[index]) begin
        taken |= needs[index][chosen[index]];
        if (!any) first = index;
        any = 1'b1;
      end
    end
  end

  for (genvar i = 0; i < Clusters; i++) begin : g_grant
    assign beat_grant_o[i] = {2{granted[i]}} & {chosen[i], !chosen[i]};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) next_q <= '0;
    else if (any) next_q <= first == Last ? '0 : first + 1'b1;
  end

  // ---- Reads: in L2 at once, in the L1 of another cluster in the next cycle.
  dma_beat_t           beat [Clusters];
  logic [Clusters-1:0] reads_packet, reads_handler, reads_other;
  logic [Clusters-1:0] asked [Clusters];  // L1 that each reads
  logic [31:0]         asked_address [Clusters];
  logic [Clusters-1:0] is_asked;

  for (genvar i = 0; i < Clusters; i++) begin : g_read
    assign beat[i]          = beat_i[i][chosen[i]];
    assign reads_packet[i]  = granted[i] && beat[i].reads && beat[i].from == PlacePacket;
    assign reads_handler[i] = granted[i] && beat[i].reads && beat[i].from == PlaceHandler;
    assign reads_other[i]   = granted[i] && beat[i].reads && beat[i].from == PlaceL1
                           && cluster_of(beat[i].address) != ClusterWidth'(i);
    assign asked[i]         = Clusters'(reads_other[i]) << index_t'(cluster_of(beat[i].address));
  end

  always_comb begin
    packet_read_address_o  = '0;
    handler_read_address_o = '0;
    is_asked               = '0;
    for (int unsigned i = 0; i < Clusters; i++) asked_address[i] = '0;
    for (int unsigned i = 0; i < Clusters; i++) begin
      if (reads_packet[i]) packet_read_address_o |= beat[i].address;
      if (reads_handler[i]) handler_read_address_o |= beat[i].address;
      is_asked |= asked[i];
      for (int unsigned j = 0; j < Clusters; j++) if (asked[i][j]) asked_address[j] |= beat[i].address;
    end
  end

  assign packet_read_valid_o  = |reads_packet;
  assign handler_read_valid_o = |reads_handler;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) other_read_valid_o <= '0;
    else other_read_valid_o <= is_asked;
  end

  always_ff @(posedge clk_i) other_read_address_o <= asked_address;

  // ---- Words return in b + 3.
  logic [Clusters-1:0] packet_q [3], handler_q [3], asked_q [3][Clusters];

  always_ff @(posedge clk_i) begin
    packet_q  <= '{reads_packet, packet_q[0], packet_q[1]};
    handler_q <= '{reads_handler, handler_q[0], handler_q[1]};
    asked_q   <= '{asked, asked_q[0], asked_q[1]};
  end

  for (genvar i = 0; i < Clusters; i++) begin : g_data
    always_comb begin
      data_o[i] = ({512{packet_q[2][i]}} & packet_read_data_i) | ({512{handler_q[2][i]}} & handler_read_data_i);
      for (int unsigned j = 0; j < Clusters; j++) data_o[i] |= {512{asked_q[2][i][j]}} & other_read_data_i[j];
    end
  end

  // ---- Writes to L2 or to the L1 of another cluster.
  logic [Clusters-1:0] to_packet, to_handler;
  logic [Clusters-1:0] to_other [Clusters];  // engines that write to each L1

  for (genvar i = 0; i < Clusters; i++) begin : g_write
    assign to_packet[i]  = write_valid_i[i] && place_of(write_i[i].address) == PlacePacket;
    assign to_handler[i] = write_valid_i[i] && place_of(write_i[i].address) == PlaceHandler;
    for (genvar j = 0; j < Clusters; j++) begin : g_other
      assign to_other[j][i] = i != j && write_valid_i[i] && place_of(write_i[i].address) == PlaceL1
                           && cluster_of(write_i[i].address) == ClusterWidth'(j);
    end
  end

  function automatic beat_request_t one_of(logic [Clusters-1:0] from, beat_request_t write [Clusters]);
    one_of = '0;
    for (int unsigned i = 0; i < Clusters; i++) if (from[i]) one_of |= write[i];
  endfunction

  // A beat uses L2 in the cycle after its request, as in L1.
  logic unused_packet, unused_handler;

  pspin_delay #(
    .Width ($bits(beat_request_t)),
    .Cycles(1)
  ) u_to_packet (
    .clk_i,
    .rst_ni,
    .valid_i(|to_packet),
    .data_i (one_of(to_packet, write_i)),
    .valid_o(packet_write_valid_o),
    .data_o (packet_write_o),
    .empty_o(unused_packet)
  );

  pspin_delay #(
    .Width ($bits(beat_request_t)),
    .Cycles(1)
  ) u_to_handler (
    .clk_i,
    .rst_ni,
    .valid_i(|to_handler),
    .data_i (one_of(to_handler, write_i)),
    .valid_o(handler_write_valid_o),
    .data_o (handler_write_o),
    .empty_o(unused_handler)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) other_write_valid_o <= '0;
    else for (int unsigned i = 0; i < Clusters; i++) other_write_valid_o[i] <= |to_other[i];
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Clusters; i++) if (|to_other[i]) other_write_o[i] <= one_of(to_other[i], write_i);
  end

endmodule
