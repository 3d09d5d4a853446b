// SPDX-License-Identifier: Apache-2.0
// The return path of tasks with two clusters: each end is reported to the queue engine exactly once, unless it is that of
// a refused request, to the NIC exactly once if it ends a packet, and to the status unit exactly once if it is a failure,
// at any pace of both; and offers are stable.
module prove_feedback
  import pspin_pkg::*;
(
  input logic              clk_i,
  input logic              rst_ni,
  input logic [1:0]        done_valid_i,
  input completion_t [1:0] done_i,
  input logic              skipped_valid_i,
  input task_t             skipped_i,
  input logic              skipped_resets_i,
  input logic              skipped_fails_i,
  input logic              refused_valid_i,
  input her_t              refused_i,
  input logic [31:0]       refused_number_i,
  input logic              ended_last_i,
  input logic              feedback_ready_i,
  input logic              failed_ready_i
);

  logic        live_q = 1'b0;
  logic [1:0]  done_ready;
  logic        skipped_ready, refused_ready, ended, feedback_valid, failed_valid, empty;
  logic [15:0] unused_mpq;
  logic        unused_failed, unused_skipped, unused_feeds_back;
  feedback_t   unused_feedback;
  completion_t unused_completion;

  pspin_feedback #(
    .Clusters      (2),
    .FeedbackCycles(1),
    .SkippedDepth  (2)
  ) u_feedback (
    .clk_i,
    .rst_ni,
    .done_valid_i,
    .done_ready_o      (done_ready),
    .done_i,
    .skipped_valid_i,
    .skipped_ready_o   (skipped_ready),
    .skipped_i,
    .skipped_resets_i,
    .skipped_fails_i,
    .refused_valid_i,
    .refused_ready_o   (refused_ready),
    .refused_i,
    .refused_number_i,
    .ended_valid_o     (ended),
    .ended_mpq_o       (unused_mpq),
    .ended_failed_o    (unused_failed),
    .ended_skipped_o   (unused_skipped),
    .ended_feeds_back_o(unused_feeds_back),
    .ended_last_i,
    .feedback_valid_o  (feedback_valid),
    .feedback_ready_i,
    .feedback_o        (unused_feedback),
    .failed_valid_o    (failed_valid),
    .failed_ready_i,
    .failed_o          (unused_completion),
    .empty_o           (empty)
  );

  // Ends that arrived with a report outstanding: at most one waits.
  logic comes, feeds_back, fails;
  logic for_engine_q, for_nic_q, for_status_q;
  logic for_engine, for_nic, for_status;

  assign comes      = u_feedback.in_valid && u_feedback.in_ready;
  assign feeds_back = comes && u_feedback.in.feeds_back;
  assign fails      = comes && u_feedback.in.outcome.kind inside {EndFaulted, EndTimedOut};
  assign for_engine = for_engine_q || (comes && !u_feedback.is_outside);
  assign for_nic    = for_nic_q || feeds_back;
  assign for_status = for_status_q || fails;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for_engine_q <= 1'b0;
      for_nic_q    <= 1'b0;
      for_status_q <= 1'b0;
    end else begin
      for_engine_q <= for_engine && !ended;
      for_nic_q    <= for_nic && !(feedback_valid && feedback_ready_i);
      for_status_q <= for_status && !(failed_valid && failed_ready_i);
    end
  end

  always_ff @(posedge clk_i) live_q <= 1'b1;

  always_comb begin
    if (live_q) assume (rst_ni);
    if (rst_ni) begin
      assert ($onehot0({done_ready, u_feedback.skipped_ready, refused_ready}));
      assert ((done_ready & ~done_valid_i) == '0);
      assert (!for_engine_q);
      assert (ended == (comes && !u_feedback.is_outside));
      assert (!refused_ready || (comes && u_feedback.is_outside));
      assert (!feedback_valid || for_nic);
      assert (!failed_valid || for_status);
      // A waiting end is the only one, and no other arrives meanwhile.
      assert (for_nic_q || for_status_q || u_feedback.way_empty);
      assert (!(for_nic_q || for_status_q) || (!u_feedback.way_empty && !comes && u_feedback.told_q));
      assert (for_nic_q == (!u_feedback.way_empty && u_feedback.out.feeds_back));
      assert (for_status_q == (!u_feedback.way_empty && u_feedback.has_failed && !u_feedback.reported_q));
      assert (u_feedback.told_q == !u_feedback.way_empty);
      // Invariants of the queue of one entry.
      assert (u_feedback.u_way.u_fifo.head_q == '0 && u_feedback.u_way.u_fifo.tail_q == '0);
      assert (u_feedback.u_way.ripe_q == !u_feedback.way_empty);
      assert (u_feedback.u_sva.is_feedback_stable && u_feedback.u_sva.is_failed_stable);
    end
  end

  logic unused;
  assign unused = skipped_ready ^ empty;

endmodule
