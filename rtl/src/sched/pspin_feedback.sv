// SPDX-License-Identifier: Apache-2.0
// Return path of tasks (PsPIN III-B1): arbitrates round robin among ends of tasks from the clusters, packets without
// a handler, and refused requests. Each is reported once to the queue engine, unless it never had the request, and to the
// NIC if it ends its packet. A failure is also reported to the status unit.
//
// An input leaves in the same cycle at the earliest; later ones queue for FeedbackCycles - 1 cycles. An end that the
// NIC or the status unit does not accept stalls all behind it.
module pspin_feedback
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters       = 4,
  parameter int unsigned FeedbackCycles = 1,
  parameter int unsigned SkippedDepth   = 4    // buffered packets without a handler
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  // From the clusters.
  input  logic        [Clusters-1:0] done_valid_i,
  output logic        [Clusters-1:0] done_ready_o,
  input  completion_t [Clusters-1:0] done_i,

  // From the queue engine: packets without a handler to run.
  input  logic                       skipped_valid_i,
  output logic                       skipped_ready_o,
  input  task_t                      skipped_i,
  input  logic                       skipped_resets_i,  // because the message is given up
  input  logic                       skipped_fails_i,   // because its bytes for L1 exceed the packet buffer of a cluster

  // Requests with numbers beyond the tables: with that number.
  input  logic                       refused_valid_i,
  output logic                       refused_ready_o,
  input  her_t                       refused_i,
  input  logic        [31:0]         refused_number_i,

  // To the queue engine, which responds in the same cycle whether the message ended.
  output logic                       ended_valid_o,
  output logic        [15:0]         ended_mpq_o,
  output logic                       ended_failed_o,
  output logic                       ended_skipped_o,
  output logic                       ended_feeds_back_o,
  input  logic                       ended_last_i,

  // To the NIC.
  output logic                       feedback_valid_o,
  input  logic                       feedback_ready_i,
  output feedback_t                  feedback_o,

  // To the status unit.
  output logic                       failed_valid_o,
  input  logic                       failed_ready_i,
  output completion_t                failed_o,

  output logic                       empty_o
);

  if (FeedbackCycles < 1) begin : g_check
    $fatal(1, "a feedback takes a cycle at least");
  end

  /////////////
  // Skipped //
  /////////////

  localparam int unsigned CountWidth = $clog2(SkippedDepth + 1);

  logic                  skipped_valid, skipped_ready, skipped_resets, skipped_fails;
  logic [CountWidth-1:0] skipped_count;
  task_t                 skipped;

  pspin_fifo #(
    .Width($bits(task_t) + 2),
    .Depth(SkippedDepth)
  ) u_skipped (
    .clk_i,
    .rst_ni,
    .valid_i(skipped_valid_i),
    .ready_o(skipped_ready_o),
    .data_i ({skipped_resets_i, skipped_fails_i, skipped_i}),
    .valid_o(skipped_valid),
    .ready_i(skipped_ready),
    .data_o ({skipped_resets, skipped_fails, skipped}),
    .count_o(skipped_count)
  );

  ////////////
  // Choice //
  ////////////

  localparam int unsigned SourceWidth = $clog2(Clusters + 2);

  logic                   in_valid, in_ready, is_outside;
  logic [SourceWidth-1:0] source;
  logic [Clusters+1:0]    requests, grants;
  completion_t            in;

  assign requests                                       = {refused_valid_i, skipped_valid, done_valid_i};
  assign {refused_ready_o, skipped_ready, done_ready_o} = grants;

  pspin_rr_arbiter #(
    .N(Clusters + 2)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .requests_i(requests),
    .take_i    (in_ready),
    .valid_o   (in_valid),
    .index_o   (source)
  );

  always_comb begin
    grants         = '0;
    grants[source] = in_valid && in_ready;
  end

  always_comb begin
    in              = '0;
    in.role         = skipped.role;
    in.mpq          = skipped.mpq;
    in.feeds_back   = skipped.feeds_back;
    in.outcome.kind = skipped_resets ? EndMessageReset : EndSkipped;
    in.her          = skipped.her;
    if (skipped_fails) in.outcome = '{EndFaulted, CauseRequest, '0, 64'(skipped.her.transfer)};
    is_outside = source == SourceWidth'(Clusters + 1);
    if (is_outside) begin
      in            = '0;
      in.feeds_back = 1'b1;
      in.outcome    = '{EndFaulted, CauseRequest, '0, 64'(refused_number_i)};
      in.her        = refused_i;
    end
    for (int unsigned i = 0; i < Clusters; i++) if (source == SourceWidth'(i)) in = done_i[i];
  end

  /////////
  // Way //
  /////////

  logic        valid, leaves, way_empty, out_is_outside;
  completion_t out;

  pspin_fallthrough #(
    .Width ($bits(completion_t) + 1),
    .Depth (FeedbackCycles),
    .Cycles(FeedbackCycles - 1)
  ) u_way (
    .clk_i,
    .rst_ni,
    .valid_i(in_valid),
    .ready_o(in_ready),
    .data_i ({is_outside, in}),
    .valid_o(valid),
    .ready_i(leaves),
    .data_o ({out_is_outside, out}),
    .empty_o(way_empty)
  );

  //////////
  // Ends //
  //////////

  logic told_q, last_q, reported_q;  // reported to the queue engine and to the status unit
  logic has_failed, last;

  assign has_failed         = out.outcome.kind inside {EndFaulted, EndTimedOut};
  assign ended_valid_o      = valid && !told_q && !out_is_outside;
  assign ended_mpq_o        = out.mpq;
  assign ended_failed_o     = has_failed;
  // A task that its HPU dropped has a cause.
  assign ended_skipped_o    = out.outcome.kind inside {EndSkipped, EndMessageReset} && out.outcome.cause == CauseNone;
  assign ended_feeds_back_o = out.feeds_back;
  // A refused message ends with its last packet.
  assign last               = out_is_outside ? out.her.eom : told_q ? last_q : ended_last_i;

  // The NIC is notified together with the status unit, or after it.
  logic is_reported;
  assign is_reported      = !has_failed || reported_q || failed_ready_i;
  assign failed_valid_o   = valid && has_failed && !reported_q;
  assign failed_o         = out;
  assign feedback_valid_o = valid && out.feeds_back && is_reported;
  assign leaves           = is_reported && (!out.feeds_back || feedback_ready_i);
  assign empty_o          = way_empty && skipped_count == '0;

  always_comb begin
    feedback_o.message  = out.her.message;
    feedback_o.address  = out.her.address;
    feedback_o.size     = out.her.size;
    feedback_o.transfer = out.her.transfer;
    feedback_o.user     = out.her.user;
    feedback_o.kind     = out.outcome.kind;
    feedback_o.last     = last;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      told_q     <= 1'b0;
      reported_q <= 1'b0;
    end else begin
      told_q     <= valid && !leaves;
      reported_q <= valid && !leaves && is_reported;
    end
  end

  always_ff @(posedge clk_i) last_q <= last;

endmodule
