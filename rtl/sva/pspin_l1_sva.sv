// A bank of L1 is used by one at a time, and each kind of access meets each other one in the tests.
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
  input logic [$clog2(Banks)-1:0] bank [Hpus+1]
);

  logic [Banks-1:0] used, wanted;
  logic             is_clash, is_lost, is_asked;
  always_comb begin
    used     = '0;
    wanted   = '0;
    is_clash = 1'b0;
    is_asked = 1'b0;
    for (int unsigned h = 0; h < Hpus; h++) begin
      is_clash = is_clash || (hpu_gnt_o[h] && used[bank[h]]);
      if (hpu_gnt_o[h]) used[bank[h]] = 1'b1;
      if (may_begin[h]) wanted[bank[h]] = 1'b1;
      is_asked = is_asked || (may_begin[h] && is_left[bank[h]]);
    end
    is_lost = |has_lost;
  end

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
