// SPDX-License-Identifier: Apache-2.0
// A bank of L1 has one user at a time; coverage: each kind of access conflicts with each other kind.
module pspin_l1_sva #(
  parameter int unsigned Hpus  = 8,
  parameter int unsigned Banks = 64
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic [Hpus-1:0]  hpu_gnt_o,
  input logic             remote_ready_o,
  input logic             remote_valid_i,
  input logic [Hpus:0]    wants,
  input logic [Hpus:0]    may_begin,
  input logic [Hpus:0]    holds_q,
  input logic [Hpus-1:0]  has_lost,
  input logic [Banks-1:0] is_ready,
  input logic [Banks-1:0] is_written,
  input logic [Banks-1:0] is_read,
  input logic [Banks-1:0] is_remote,
  input logic [Banks-1:0] is_left,
  input logic             owes_q,
  input logic [$clog2(Banks)-1:0] bank [Hpus+1]
);

  logic [Banks-1:0] used, wanted;
  logic             is_clash, is_lost, is_asked, hpu_loses;
  always_comb begin
    hpu_loses = 1'b0;
    used     = '0;
    wanted   = '0;
    is_clash = 1'b0;
    is_asked = 1'b0;
    for (int unsigned h = 0; h < Hpus; h++) begin
      is_clash = is_clash || (hpu_gnt_o[h] && used[bank[h]]);
      if (hpu_gnt_o[h]) used[bank[h]] = 1'b1;
      if (may_begin[h]) wanted[bank[h]] = 1'b1;
      is_asked = is_asked || (may_begin[h] && is_left[bank[h]]);
      hpu_loses = hpu_loses || (has_lost[h] && is_remote[bank[h]]);
    end
    is_lost = |has_lost;
  end

  // Bank at which an HPU lost to a word of another cluster, until an HPU gets it or none wants it.
  logic                     waits_q, is_wanted, is_given;
  logic [$clog2(Banks)-1:0] waits_bank_q;
  always_comb begin
    is_wanted = 1'b0;
    is_given  = 1'b0;
    for (int unsigned h = 0; h < Hpus; h++) begin
      is_wanted = is_wanted || (wants[h] && bank[h] == waits_bank_q);
      is_given  = is_given || (hpu_gnt_o[h] && bank[h] == waits_bank_q);
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waits_q <= 1'b0;
    else if (hpu_loses) waits_q <= 1'b1;
    else waits_q <= waits_q && is_wanted && !is_given && !remote_ready_o;
  end
  always_ff @(posedge clk_i) if (hpu_loses) waits_bank_q <= bank[Hpus];

  InTurn : assert property (@(posedge clk_i) disable iff (!rst_ni) !(waits_q && remote_ready_o && bank[Hpus] == waits_bank_q));
  Alone : assert property (@(posedge clk_i) disable iff (!rst_ni)
    !is_clash && (used & ~is_left) == '0 && (is_remote & (is_written | is_read)) == '0);
  BeatsFind : assert property (@(posedge clk_i) disable iff (!rst_ni) ((is_written | is_read) & ~is_ready) == '0);
  BeatsApart : assert property (@(posedge clk_i) disable iff (!rst_ni) (is_written & is_read) == '0);
  Busy : assert property (@(posedge clk_i) disable iff (!rst_ni) (hpu_gnt_o != '0) == is_asked);
  OneEach : assert property (@(posedge clk_i) disable iff (!rst_ni) used == (wanted & is_left));
  InOrder : assert property (@(posedge clk_i) disable iff (!rst_ni) ({remote_ready_o, hpu_gnt_o} & holds_q) == '0);

  HpuLosesToHpu : cover property (@(posedge clk_i) disable iff (!rst_ni) is_lost && (wanted & ~is_left) == '0);
  HpuLosesToWrite : cover property (@(posedge clk_i) disable iff (!rst_ni) (wanted & is_written) != '0);
  HpuLosesToRead : cover property (@(posedge clk_i) disable iff (!rst_ni) (wanted & is_read) != '0);
  HpuLosesToRemote : cover property (@(posedge clk_i) disable iff (!rst_ni) (wanted & is_remote) != '0);
  HpuLosesToAtomic : cover property (@(posedge clk_i) disable iff (!rst_ni) (wanted & ~is_ready) != '0);
  RemoteGivesWay : cover property (@(posedge clk_i) disable iff (!rst_ni) owes_q && may_begin[Hpus] && hpu_gnt_o != '0);
  RemoteLoses : cover property (@(posedge clk_i) disable iff (!rst_ni) remote_valid_i && !remote_ready_o && !holds_q[Hpus]);
  AtomicWaits : cover property (@(posedge clk_i) disable iff (!rst_ni)
    (wants[Hpus-1:0] & ~may_begin[Hpus-1:0]) != '0 && hpu_gnt_o != '0);
  RemoteAtomicWaits : cover property (@(posedge clk_i) disable iff (!rst_ni) wants[Hpus] && !may_begin[Hpus]);
  Both : cover property (@(posedge clk_i) disable iff (!rst_ni) is_written != '0 && is_read != '0);

endmodule

bind pspin_l1 pspin_l1_sva #(
  .Hpus (Hpus),
  .Banks(Banks)
) u_sva (.*);
