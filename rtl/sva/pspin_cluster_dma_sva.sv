// SPDX-License-Identifier: Apache-2.0
// Invariants of a cluster's DMA engine: no stage after a grant stalls, because no two beats ever use the same wide port
// of L1, and no two copies of a queue land in the same cycle.
module pspin_cluster_dma_sva
  import pspin_pkg::*;
#(
  parameter int unsigned TimerCycles = 11
) (
  input logic                   clk_i,
  input logic                   rst_ni,

  input logic                   packet_valid_i,
  input logic                   packet_ready,
  input dma_beat_t [1:0]        beat_o,
  input logic [1:0]             beat_grant_i,
  input logic                   own_write_valid,
  input logic                   other_write_valid_i,
  input logic                   own_read_valid_q,
  input logic                   other_read_valid_i,
  input logic                   wide_write_valid_o,
  input logic                   wide_read_valid_o,
  input logic                   meets,           // both wide ports use the same banks
  input logic [TimerCycles-1:0] packet_timer_q,
  input logic [TimerCycles-1:0] packet_starts,
  input logic [TimerCycles-1:0] handler_timer_q,
  input logic [TimerCycles-1:0] handler_starts,
  input logic                   nhi_write_valid_i,
  input logic                   nhi_write_ready_o,
  input logic                   nhi_read_valid_i,
  input logic                   nhi_read_ready_o
);

  default clocking @(posedge clk_i);
  endclocking
  default disable iff (!rst_ni);

  PacketHasRoom : assert property (packet_valid_i |-> packet_ready);
  OneGrant : assert property ($onehot0(beat_grant_i));
  GrantIsWanted : assert property ((beat_grant_i & ~{beat_o[1].valid, beat_o[0].valid}) == '0);
  OneWrite : assert property (!(own_write_valid && other_write_valid_i));
  OneRead : assert property (!(own_read_valid_q && other_read_valid_i));
  OtherBanks : assert property (!(wide_write_valid_o && wide_read_valid_o && meets));
  ReadWaitsForUse : assert property (nhi_read_valid_i && !nhi_read_ready_o && !own_read_valid_q && !other_read_valid_i
                                     |-> wide_write_valid_o && meets);
  OnePacketLands : assert property ((packet_timer_q >> 1 & packet_starts) == '0);
  OneCopyLands : assert property ((handler_timer_q >> 1 & handler_starts) == '0);

  BothQueues : cover property (beat_o[0].valid && beat_o[1].valid);
  WriteWaits : cover property (nhi_write_valid_i && !nhi_write_ready_o);
  ReadWaits : cover property (nhi_read_valid_i && !nhi_read_ready_o);
  ReadOvertakes : cover property (nhi_write_valid_i && !nhi_write_ready_o && nhi_read_valid_i && nhi_read_ready_o);
  BothPorts : cover property (wide_write_valid_o && wide_read_valid_o);

endmodule

bind pspin_cluster_dma pspin_cluster_dma_sva #(
  .TimerCycles(TimerCycles)
) u_sva (
  .packet_ready(unused_ready),
  .meets       (same_group(wide_write_o.address, wide_read_address_o)),
  .*
);
