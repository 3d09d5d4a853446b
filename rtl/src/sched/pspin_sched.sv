// SPDX-License-Identifier: Apache-2.0
// Scheduler of the unit (PsPIN III-B1): the queue engine, the dispatcher, and the return path of tasks.
//
// A request accepted in cycle T reaches a cluster in T + 3; a task's end offered by a cluster in T reaches the NIC in
// the same cycle, unless others compete.
module pspin_sched
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters       = 4,
  parameter int unsigned Tasks          = 20,    // capacity of a cluster
  parameter int unsigned Queues         = 8,     // a power of two
  parameter int unsigned SharedCells    = 4,
  parameter int unsigned OwnCells       = 1,
  parameter int unsigned IdWidth        = 10,    // width of message numbers
  parameter int unsigned Messages       = 2 ** IdWidth,  // message numbers, and contexts: requests beyond are refused
  parameter int unsigned Contexts       = 64,
  parameter int unsigned BufferBytes    = 2 ** SizeWidth,  // packet buffer of a cluster: tasks with more bytes fail
  parameter int unsigned SelectCycles   = 2,
  parameter int unsigned DispatchCycles = 1,
  parameter int unsigned FeedbackCycles = 1,
  parameter int unsigned SkippedDepth   = 4,     // buffered packets without a handler
  parameter bit          UsesHome       = 1'b1,  // policy of the dispatcher: prefer the home cluster
  parameter bit          UsesOthers     = 1'b1,  // allow clusters other than the home cluster
  parameter bit          UsesPins       = 1'b0,  // the pin of a context names the home cluster
  localparam int unsigned TasksWidth  = $clog2(Tasks + 1),
  localparam int unsigned InsideWidth = $clog2(Queues * OwnCells + SharedCells + Clusters * Tasks + SkippedDepth + FeedbackCycles + 2)
) (
  input  logic                                       clk_i,
  input  logic                                       rst_ni,

  // Execution contexts, from the registers.
  input  logic                                       context_write_i,
  input  logic               [ContextWidth-1:0]      context_index_i,
  input  execution_context_t                         context_i,

  // Requests of the NIC, and feedback to it.
  input  logic                                       her_valid_i,
  output logic                                       her_ready_o,
  input  her_t                                       her_i,
  output logic                                       feedback_valid_o,
  input  logic                                       feedback_ready_i,
  output feedback_t                                  feedback_o,

  // To the clusters: bytes of the offered task; room and number of tasks of each, as of the end of the last cycle; and
  // the cluster that accepts the task in this cycle.
  output logic               [SizeWidth-1:0]         offer_transfer_o,
  input  logic [Clusters-1:0]                        has_room_i,
  input  logic [Clusters-1:0][TasksWidth-1:0]        tasks_i,
  output logic [Clusters-1:0]                        send_valid_o,
  output task_t                                      send_o,

  // From the clusters: ends of tasks.
  input  logic [Clusters-1:0]                        done_valid_i,
  output logic [Clusters-1:0]                        done_ready_o,
  input  completion_t [Clusters-1:0]                 done_i,

  // From the unit: all messages are given up, and requests wait. To it: all of them are, so that the clusters may drop
  // their tasks; and the last of them has left.
  input  logic                                       give_up_i,
  output logic                                       given_up_o,
  output logic                                       clean_o,

  // To the status unit: failed tasks, and messages given up by the idle time-out.
  output logic                                       failed_valid_o,
  input  logic                                       failed_ready_i,
  output completion_t                                failed_o,
  output logic                                       idle_valid_o,
  input  logic                                       idle_ready_i,
  output idle_t                                      idle_o,

  // From the registers: the driver gives up a message. Results are combinational.
  input  logic                                       reset_valid_i,
  input  logic [31:0]                                reset_message_i,
  output logic                                       reset_done_o,     // the message exists
  output logic                                       reset_free_o,     // its number is free now

  // To the registers and counters.
  output logic [Queues-1:0]                          free_o,           // queues without a message
  output logic [InsideWidth-1:0]                     inside_o,         // accepted packets without feedback, but for refused ones
  output logic                                       empty_o,          // nothing inside or arriving
  output sched_events_t                              events_o
);

  if (SelectCycles != 2) begin : g_check_select
    $fatal(1, "the queue engine selects in two cycles");
  end
  if (DispatchCycles < 1) begin : g_check_dispatch
    $fatal(1, "the dispatcher takes a cycle at least");
  end

  localparam int unsigned QueueWidth  = $clog2(Queues);
  localparam int unsigned HomeWidth   = Clusters > 1 ? $clog2(Clusters) : 1;
  localparam int unsigned CountSkips  = SkippedDepth + FeedbackCycles + 1;
  localparam int unsigned CountTasks  = Clusters * Tasks + CountSkips;
  localparam int unsigned CellWidth   = $bits(her_t) + HomeWidth;

  //////////////
  // Requests //
  //////////////

  // A request with a number beyond the tables would become another message or context. It ends here with a failure.
  logic        has_message, has_context, is_legal, her_valid, her_ready, refuses, refused_valid_q, refused_ready;
  her_t        refused_q;
  logic [31:0] refused_number_q;

  assign has_message = her_i.message < Messages;
  assign has_context = 32'(her_i.execution_context) < Contexts;
  assign is_legal    = has_message && has_context;
  assign her_valid   = her_valid_i && is_legal && !give_up_i;
  assign refuses     = her_valid_i && !is_legal && !give_up_i && !refused_valid_q;
  assign her_ready_o = !give_up_i && (is_legal ? her_ready : !refused_valid_q);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) refused_valid_q <= 1'b0;
    else refused_valid_q <= refuses || (refused_valid_q && !refused_ready);
  end

  always_ff @(posedge clk_i) begin
    if (refuses) begin
      refused_q        <= her_i;
      refused_number_q <= has_context ? her_i.message : 32'(her_i.execution_context);
    end
  end

  //////////////
  // Contexts //
  //////////////

  logic [2:0]              roles;
  logic                    is_pinned, idle_read;
  logic [7:0]              pin;
  logic [ContextWidth-1:0] idle_index;
  logic [31:0]             idle_cycles;

  pspin_mpq_contexts #(
    .Contexts(Contexts)
  ) u_contexts (
    .clk_i,
    .rst_ni,
    .write_i        (context_write_i),
    .write_index_i  (context_index_i),
    .write_context_i(context_i),
    .index_i        (her_i.execution_context),
    .roles_o        (roles),
    .is_pinned_o    (is_pinned),
    .pin_o          (pin),
    .idle_read_i    (idle_read),
    .idle_index_i   (idle_index),
    .idle_cycles_o  (idle_cycles)
  );

  // The home cluster is computed on arrival of a request, and stored with it.
  logic [HomeWidth-1:0] home;
  assign home = UsesPins && is_pinned ? HomeWidth'(pin % 8'(Clusters)) : HomeWidth'(her_i.message % Clusters);

  //////////////////
  // Queue engine //
  //////////////////

  logic                  task_valid, task_ready, task_skips, task_resets, task_feeds_back;
  logic [QueueWidth-1:0] task_queue;
  role_e                 task_role;
  logic [HomeWidth-1:0]  task_home;
  her_t                  task_her;
  logic                  ended_valid, ended_failed, ended_skipped, ended_feeds_back, ended_last;
  logic [15:0]           ended_mpq;
  logic                  touch, touch_new, idle, idle_done, idle_free;
  logic [QueueWidth-1:0] touched, idle_queue;
  logic [Queues-1:0]     active;
  logic [IdWidth-1:0]    idle_message;
  logic [ContextWidth-1:0] idle_context;

  pspin_mpq #(
    .Queues     (Queues),
    .SharedCells(SharedCells),
    .OwnCells   (OwnCells),
    .IdWidth    (IdWidth),
    .Width      (CellWidth),
    .TasksWidth ($clog2(CountTasks + 1)),
    .SkipsWidth ($clog2(CountSkips + 1))
  ) u_mpq (
    .clk_i,
    .rst_ni,
    .her_valid_i      (her_valid),
    .her_ready_o      (her_ready),
    .her_message_i    (IdWidth'(her_i.message)),
    .her_eom_i        (her_i.eom),
    .her_roles_i      (roles),
    .her_data_i       ({home, her_i}),
    .task_valid_o     (task_valid),
    .task_ready_i     (task_ready),
    .task_queue_o     (task_queue),
    .task_role_o      (task_role),
    .task_feeds_back_o(task_feeds_back),
    .task_skips_o     (task_skips),
    .task_resets_o    (task_resets),
    .task_data_o      ({task_home, task_her}),
    .done_valid_i     (ended_valid),
    .done_queue_i     (QueueWidth'(ended_mpq)),
    .done_failed_i    (ended_failed),
    .done_skipped_i   (ended_skipped),
    .done_last_o      (ended_last),
    .reset_valid_i    (reset_valid_i && 32'(IdWidth'(reset_message_i)) == reset_message_i),
    .reset_message_i  (IdWidth'(reset_message_i)),
    .reset_done_o,
    .reset_free_o,
    .idle_valid_i     (idle),
    .idle_queue_i     (idle_queue),
    .idle_done_o      (idle_done),
    .idle_free_o      (idle_free),
    .idle_message_o   (idle_message),
    .touch_o          (touch),
    .touch_new_o      (touch_new),
    .touched_o        (touched),
    .active_o         (active),
    .free_o
  );

  //////////
  // Idle //
  //////////

  logic is_due;

  pspin_mpq_idle #(
    .Queues(Queues)
  ) u_idle (
    .clk_i,
    .rst_ni,
    .touch_i        (touch),
    .touch_new_i    (touch_new),
    .touched_i      (touched),
    .touch_context_i(her_i.execution_context),
    .active_i       (active),
    .all_i          (give_up_i),
    .read_o         (idle_read),
    .read_context_o (idle_index),
    .idle_cycles_i  (idle_cycles),
    .idle_o         (is_due),
    .idle_queue_o   (idle_queue),
    .idle_context_o (idle_context)
  );

  // One message is reported at a time.
  assign idle = is_due && !idle_valid_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) idle_valid_o <= 1'b0;
    else if (idle_done) idle_valid_o <= 1'b1;
    else if (idle_ready_i) idle_valid_o <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (idle_done) begin
      idle_o.message           <= 32'(idle_message);
      idle_o.execution_context <= idle_context;
      idle_o.is_free           <= idle_free;
      idle_o.is_disabled       <= give_up_i;
    end
  end

  ////////////////
  // Dispatcher //
  ////////////////

  logic is_ripe, sends, has_cluster, skipped_ready, is_too_long, ends_here;

  // No cluster ever has room for such a task, so that it would block all tasks behind it. It fails.
  assign is_too_long = 32'(task_her.transfer) > BufferBytes && !task_skips;
  assign ends_here   = task_skips || is_too_long;

  // The task has spent DispatchCycles in the dispatcher.
  if (DispatchCycles == 1) begin : g_at_once
    assign is_ripe = 1'b1;
  end else begin : g_later
    localparam int unsigned WaitWidth = $clog2(DispatchCycles);
    logic [WaitWidth-1:0] wait_q;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) wait_q <= WaitWidth'(DispatchCycles - 1);
      else if (!task_valid || task_ready) wait_q <= WaitWidth'(DispatchCycles - 1);
      else if (wait_q != '0) wait_q <= wait_q - 1'b1;
    end
    assign is_ripe = wait_q == '0;
  end

  assign sends      = task_valid && is_ripe && !ends_here;
  assign task_ready = is_ripe && (ends_here ? skipped_ready : has_cluster);

  pspin_dispatcher #(
    .Clusters  (Clusters),
    .Tasks     (Tasks),
    .UsesHome  (UsesHome),
    .UsesOthers(UsesOthers)
  ) u_dispatcher (
    .valid_i(sends),
    .ready_o(has_cluster),
    .home_i (task_home),
    .has_room_i,
    .tasks_i,
    .send_o (send_valid_o)
  );

  assign offer_transfer_o = task_her.transfer;

  always_comb begin
    send_o.role       = task_role;
    send_o.mpq        = 16'(task_queue);
    send_o.feeds_back = task_feeds_back;
    send_o.her        = task_her;
  end

  //////////////
  // Feedback //
  //////////////

  logic feedback_empty;

  pspin_feedback #(
    .Clusters      (Clusters),
    .FeedbackCycles(FeedbackCycles),
    .SkippedDepth  (SkippedDepth)
  ) u_feedback (
    .clk_i,
    .rst_ni,
    .done_valid_i,
    .done_ready_o,
    .done_i,
    .skipped_valid_i   (task_valid && is_ripe && ends_here),
    .skipped_ready_o   (skipped_ready),
    .skipped_i         (send_o),
    .skipped_resets_i  (task_resets),
    .skipped_fails_i   (is_too_long),
    .refused_valid_i   (refused_valid_q),
    .refused_ready_o   (refused_ready),
    .refused_i         (refused_q),
    .refused_number_i  (refused_number_q),
    .ended_valid_o     (ended_valid),
    .ended_mpq_o       (ended_mpq),
    .ended_failed_o    (ended_failed),
    .ended_skipped_o   (ended_skipped),
    .ended_feeds_back_o(ended_feeds_back),
    .ended_last_i      (ended_last),
    .feedback_valid_o,
    .feedback_ready_i,
    .feedback_o,
    .failed_valid_o,
    .failed_ready_i,
    .failed_o,
    .empty_o           (feedback_empty)
  );

  //////////////
  // Counters //
  //////////////

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) inside_o <= '0;
    else inside_o <= inside_o + InsideWidth'(touch) - InsideWidth'(ended_valid && ended_feeds_back);
  end

  // Widths of fields suit all configurations.
  logic unused;
  assign unused = ^ended_mpq;

  assign given_up_o = give_up_i && active == '0;
  assign clean_o    = &free_o && feedback_empty && !task_valid && !idle_valid_o && !refused_valid_q && done_valid_i == '0;
  assign empty_o    = clean_o && !her_valid_i;

  always_comb begin
    events_o.accepted = touch || refuses;
    events_o.refused  = her_valid_i && !her_ready_o;
    events_o.sent     = sends && has_cluster;
    events_o.blocked  = sends && !has_cluster;
    events_o.skipped  = task_valid && task_ready && ends_here;
    events_o.held     = feedback_valid_o && !feedback_ready_i;
    events_o.idle     = idle_done;
  end

endmodule
