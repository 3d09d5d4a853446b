// SPDX-License-Identifier: Apache-2.0
// The queue engine keeps the order of handlers: no payload handler before the end of the header handler, the completion
// handler after all others and once, and each packet fed back once. The environment allows all behaviour of the real
// unit.
module prove_mpq
  import pspin_pkg::*;
#(
  parameter int unsigned Queues     = 2,
  parameter int unsigned IdWidth    = 2,
  parameter int unsigned TasksWidth = 4
) (
  input logic               clk_i,
  input logic               rst_ni,
  input logic               her_valid_i,
  input logic [IdWidth-1:0] her_message_i,
  input logic               her_eom_i,
  input logic [2:0]         her_roles_i,
  input logic               task_ready_i,
  input logic               done_valid_i,
  input logic               done_queue_i,
  input logic               done_failed_i,
  input logic [2:0]         done_kind_i,
  input logic               reset_valid_i,
  input logic [IdWidth-1:0] reset_message_i,
  input logic               idle_valid_i,
  input logic               idle_queue_i
);

  // Running tasks of a queue, by kind.
  typedef enum logic [2:0] {
    Header,
    Payload,      // feeds back
    PayloadLast,  // for the last packet, which waits for the completion handler
    Skipped,
    Completion
  } kind_e;
  localparam int unsigned Kinds = 5;
  localparam int unsigned Most  = 2**TasksWidth - 1;  // limit of the tasks of a message
  typedef logic [TasksWidth-1:0] count_t;
  typedef logic [TasksWidth+2:0] sum_t;

  count_t             running_q [Queues][Kinds];
  sum_t               inside_q  [Queues];  // accepted packets without feedback
  logic [Queues-1:0]  has_completed_q;     // the completion handler of the message has started

  logic               ready, valid, queue, feeds_back, skips, resets, last, reset_done, reset_free, idle_done, idle_free;
  logic               touch, touch_new, touched, live_q = 1'b0;
  logic [Queues-1:0]  active, free;
  logic [IdWidth-1:0] idle_message;
  logic               data;
  role_e              role;

  pspin_mpq #(
    .Queues     (Queues),
    .SharedCells(1),
    .OwnCells   (1),
    .IdWidth    (IdWidth),
    .Width      (1),
    .TasksWidth (TasksWidth),
    .SkipsWidth (TasksWidth)
  ) u_mpq (
    .clk_i,
    .rst_ni,
    .her_valid_i,
    .her_ready_o      (ready),
    .her_message_i,
    .her_eom_i,
    .her_roles_i,
    .her_data_i       (1'b0),
    .task_valid_o     (valid),
    .task_ready_i,
    .task_queue_o     (queue),
    .task_role_o      (role),
    .task_feeds_back_o(feeds_back),
    .task_skips_o     (skips),
    .task_resets_o    (resets),
    .task_data_o      (data),
    .done_valid_i,
    .done_queue_i,
    .done_failed_i,
    .done_skipped_i   (done_kind_i == Skipped),
    .done_last_o      (last),
    .reset_valid_i,
    .reset_message_i,
    .reset_done_o     (reset_done),
    .reset_free_o     (reset_free),
    .idle_valid_i,
    .idle_queue_i,
    .idle_done_o      (idle_done),
    .idle_free_o      (idle_free),
    .idle_message_o   (idle_message),
    .touch_o          (touch),
    .touch_new_o      (touch_new),
    .touched_o        (touched),
    .active_o         (active),
    .free_o           (free)
  );

  kind_e kind;
  always_comb begin
    if (skips) kind = Skipped;
    else if (role == RoleHeader) kind = Header;
    else if (role == RoleCompletion) kind = Completion;
    else kind = feeds_back ? Payload : PayloadLast;
  end

  logic accepts, takes, feeds;
  assign accepts = her_valid_i && ready;
  assign takes   = valid && task_ready_i;
  assign feeds   = done_valid_i && done_kind_i inside {Payload, Skipped, Completion};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < Queues; i++) begin
        for (int unsigned j = 0; j < Kinds; j++) running_q[i][j] <= '0;
        inside_q[i] <= '0;
      end
      has_completed_q <= '0;
    end else begin
      for (int unsigned i = 0; i < Queues; i++) begin
        for (int unsigned j = 0; j < Kinds; j++) begin
          running_q[i][j] <= running_q[i][j] + count_t'(takes && queue == 1'(i) && kind == kind_e'(j))
                           - count_t'(done_valid_i && done_queue_i == 1'(i) && done_kind_i == 3'(j));
        end
        inside_q[i] <= inside_q[i] + sum_t'(accepts && touched == 1'(i)) - sum_t'(feeds && done_queue_i == 1'(i));
        if (takes && queue == 1'(i) && kind == Completion) has_completed_q[i] <= 1'b1;
        else if (touch_new && touched == 1'(i)) has_completed_q[i] <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) live_q <= 1'b1;

  // Running tasks by queue, with the pending one.
  sum_t all [Queues], all_feed [Queues], skipped [Queues];
  always_comb begin
    for (int unsigned i = 0; i < Queues; i++) begin
      all[i] = sum_t'(valid && queue == 1'(i));
      for (int unsigned j = 0; j < Kinds; j++) all[i] = all[i] + sum_t'(running_q[i][j]);
      all_feed[i] = sum_t'(running_q[i][Payload]) + sum_t'(running_q[i][Skipped]) + sum_t'(running_q[i][Completion])
                  + sum_t'(valid && queue == 1'(i) && feeds_back);
      skipped[i]  = sum_t'(running_q[i][Skipped]) + sum_t'(valid && queue == 1'(i) && skips);
    end
  end

  // Environment: only running tasks end, and their number stays countable.
  always_comb begin
    if (live_q) assume (rst_ni);
    assume (!done_valid_i || (done_kind_i < 3'(Kinds) && running_q[done_queue_i][done_kind_i] != '0));
    assume (all[0] < Most && all[1] < Most);
  end

  // A skipped packet is fed back by its end, like a packet of the completion handler; the end of a header handler gives
  // no feedback.
  always_comb begin
    if (rst_ni && valid && (skips || role == RoleCompletion)) assert (feeds_back);
    if (rst_ni && valid && role == RoleHeader) assert (!feeds_back);
    if (rst_ni && valid && skips) assert (role == RolePayload);
  end

  for (genvar i = 0; i < Queues; i++) begin : g_queue
    logic is_offered, runs;
    sum_t headers, lasts, completions;
    assign is_offered  = valid && queue == 1'(i);
    assign runs        = u_mpq.roles_q[i][RolePayload] && !u_mpq.failed_q[i];
    assign headers     = sum_t'(running_q[i][Header]) + sum_t'(is_offered && kind == Header);
    assign lasts       = sum_t'(running_q[i][PayloadLast]) + sum_t'(is_offered && kind == PayloadLast);
    assign completions = sum_t'(running_q[i][Completion]) + sum_t'(is_offered && kind == Completion);

    always_comb begin
      if (rst_ni) begin
        // A header handler runs alone, and first.
        if (running_q[i][Header] != '0) assert (all[i] == 1);
        // The completion handler runs alone, last, and once.
        if (running_q[i][Completion] != '0) assert (all[i] == 1);
        if (is_offered && kind == Completion) assert (all[i] == 1 && !has_completed_q[i] && inside_q[i] == 1);
        if (has_completed_q[i] && !free[i]) assert (inside_q[i] <= 1);
        // No packet is lost, and none is fed back twice: a message ends once all of its packets are fed back.
        if (free[i]) assert (inside_q[i] == '0 && all[i] == '0);
        if (inside_q[i] == '0) assert (all_feed[i] == '0);

        // The counts of the engine are correct, and each state has only its kinds of tasks; this makes the properties
        // inductive.
        assert (sum_t'(u_mpq.running_q[i]) == all[i]);
        assert (sum_t'(u_mpq.skipped_q[i]) == skipped[i]);
        assert (inside_q[i] == all_feed[i] + sum_t'(u_mpq.length_q[i]) + sum_t'(u_mpq.has_last_q[i]));
        assert (skipped[i] == '0 || skipped[i] == all[i]);
        assert (headers <= 1 && completions <= 1 && lasts <= sum_t'(u_mpq.has_last_q[i]));
        if (u_mpq.state_q[i] != MpqReset) begin
          assert (headers == sum_t'(u_mpq.state_q[i] == MpqHeaderRunning));
          assert (completions == sum_t'(u_mpq.state_q[i] == MpqCompletionRunning));
          if (skipped[i] != '0) assert (!runs);
          else if (u_mpq.state_q[i] inside {MpqPayload, MpqDraining} && all[i] != '0) assert (runs);
        end
        if (u_mpq.has_last_q[i]) assert (u_mpq.roles_q[i][RoleCompletion] && !u_mpq.failed_q[i]);
        if (headers != '0 || completions != '0) assert (all[i] == 1);
        if (completions != '0) assert (u_mpq.length_q[i] == '0 && !u_mpq.has_last_q[i] && u_mpq.ended_q[i]);
        if (is_offered && kind == Completion) assert (!has_completed_q[i]);
        if (has_completed_q[i]) begin
          assert (u_mpq.state_q[i] inside {MpqCompletionRunning, MpqReset, MpqFree});
          if (!free[i]) assert (completions == 1);
        end
      end
    end
  end

  logic unused;
  assign unused = ^{resets, last, reset_done, reset_free, idle_done, idle_free, idle_message, active, touch, data};

endmodule
