// SPDX-License-Identifier: Apache-2.0
// Guard of the queue engine, guarantees for the clusters, and coverage.
module pspin_sched_sva
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters = 4,
  parameter int unsigned Queues   = 8,
  parameter int unsigned IdWidth  = 10,
  parameter int unsigned Contexts = 64
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic                her_valid,
  input logic                refuses,
  input logic                is_too_long,
  input her_t                her_i,
  input logic [Clusters-1:0] has_room_i,
  input logic [Clusters-1:0] send_valid_o,
  input logic                task_valid,
  input logic                task_skips,
  input logic                task_resets,
  input logic                skipped_ready,
  input logic                is_due,
  input logic                idle,
  input logic                idle_done,
  input logic                idle_valid_o,
  input logic                reset_valid_i,
  input logic                empty_o,
  input logic [Queues-1:0]   free_o
);

  // Only requests for existing messages and contexts reach the queue engine.
  Message : assert property (@(posedge clk_i) disable iff (!rst_ni) !her_valid || 64'(her_i.message) < 64'd1 << IdWidth);
  Context : assert property (@(posedge clk_i) disable iff (!rst_ni) !her_valid || 32'(her_i.execution_context) < Contexts);

  // A task goes to one cluster with room for it; a skipped packet goes to none.
  Room : assert property (@(posedge clk_i) disable iff (!rst_ni) $onehot0(send_valid_o) && (send_valid_o & ~has_room_i) == '0);
  Skipped : assert property (@(posedge clk_i) disable iff (!rst_ni) !(task_valid && task_skips) || send_valid_o == '0);
  Empty : assert property (@(posedge clk_i) disable iff (!rst_ni) !empty_o || &free_o);

  for (genvar i = 0; i < Clusters; i++) begin : g_cluster
    Sent : cover property (@(posedge clk_i) disable iff (!rst_ni) send_valid_o[i]);
  end
  NoRoom : cover property (@(posedge clk_i) disable iff (!rst_ni) task_valid && !task_skips && has_room_i == '0);
  SkippedWaits : cover property (@(posedge clk_i) disable iff (!rst_ni) task_valid && task_skips && !skipped_ready);
  SkippedByReset : cover property (@(posedge clk_i) disable iff (!rst_ni) task_valid && task_skips && task_resets);
  RefusedRequest : cover property (@(posedge clk_i) disable iff (!rst_ni) refuses);
  TooLong : cover property (@(posedge clk_i) disable iff (!rst_ni) task_valid && is_too_long);
  GivenUp : cover property (@(posedge clk_i) disable iff (!rst_ni) idle_done);
  Saved : cover property (@(posedge clk_i) disable iff (!rst_ni) idle && !idle_done);
  DueWhileTold : cover property (@(posedge clk_i) disable iff (!rst_ni) is_due && idle_valid_o);
  DriverFirst : cover property (@(posedge clk_i) disable iff (!rst_ni) idle && reset_valid_i);

endmodule

bind pspin_sched pspin_sched_sva #(
  .Clusters(Clusters),
  .Queues  (Queues),
  .IdWidth (IdWidth),
  .Contexts(Contexts)
) u_sva (.*);
