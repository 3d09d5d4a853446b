// SPDX-License-Identifier: Apache-2.0
// Invariants of the DMA interconnect: a cluster has one grant, for a beat that it offers; no word is read from a busy
// bank; and each channel of each memory moves one beat per cycle.
module pspin_dma_xbar_sva
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters      = 4,
  parameter int unsigned PacketGroups  = 32,
  parameter int unsigned HandlerGroups = 4
) (
  input logic                     clk_i,
  input logic                     rst_ni,
  input dma_beat_t [1:0]          beat_i [Clusters],
  input logic [1:0]               beat_grant_o [Clusters],
  input logic [Clusters-1:0]      write_valid_i,
  input beat_request_t            write_i [Clusters],
  input logic [PacketGroups-1:0]  packet_busy_i,
  input logic [HandlerGroups-1:0] handler_busy_i,
  input logic [Clusters-1:0]      other_write_valid_o
);

  default clocking @(posedge clk_i);
  endclocking
  default disable iff (!rst_ni);

  logic [Clusters-1:0] has_beat, is_free;
  logic [2:0][7:0]     reads, writes;  // granted beats of packet buffer, handler memory and all L1
  logic [7:0]          arriving;       // beats at the packet buffer

  always_comb begin
    has_beat = '1;
    is_free  = '1;
    reads    = '0;
    writes   = '0;
    arriving = '0;
    for (int unsigned i = 0; i < Clusters; i++) begin
      if (write_valid_i[i] && place_of(write_i[i].address) == PlacePacket) arriving++;
      for (int unsigned j = 0; j < 2; j++) begin
        if (beat_grant_o[i][j]) begin
          if (!beat_i[i][j].valid) has_beat[i] = 1'b0;
          if (beat_i[i][j].reads && beat_i[i][j].from == PlacePacket
              && packet_busy_i[(beat_i[i][j].address - PacketStart) / BeatBytes % PacketGroups]) is_free[i] = 1'b0;
          if (beat_i[i][j].reads && beat_i[i][j].from == PlaceHandler
              && handler_busy_i[(beat_i[i][j].address - HandlerStart) / BeatBytes % HandlerGroups]) is_free[i] = 1'b0;
          if (beat_i[i][j].from == PlacePacket) reads[0]++;
          if (beat_i[i][j].from == PlaceHandler) reads[1]++;
          if (beat_i[i][j].from == PlaceL1 && beat_i[i][j].reads) reads[2]++;
          if (beat_i[i][j].to == PlacePacket) writes[0]++;
          if (beat_i[i][j].to == PlaceHandler) writes[1]++;
          if (beat_i[i][j].to == PlaceL1) writes[2]++;
        end
      end
    end
  end

  for (genvar i = 0; i < Clusters; i++) begin : g_cluster
    OneGrant : assert property ($onehot0(beat_grant_o[i]));
  end
  HasBeat : assert property (&has_beat);
  BankIsFree : assert property (&is_free);
  OneRead : assert property (reads[0] <= 1 && reads[1] <= 1 && 32'(reads[2]) <= Clusters);
  OneWrite : assert property (writes[0] <= 1 && writes[1] <= 1 && 32'(writes[2]) <= Clusters);
  OneArrives : assert property (arriving <= 1);

endmodule

bind pspin_dma_xbar pspin_dma_xbar_sva #(
  .Clusters     (Clusters),
  .PacketGroups (PacketGroups),
  .HandlerGroups(HandlerGroups)
) u_sva (.*);
