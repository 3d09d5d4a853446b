// SPDX-License-Identifier: Apache-2.0
// The engine of the message processing queues (PsPIN III-B1): keeps the order of handlers within a message.
//
// A request is accepted in cycle T. It is in its queue in T + 1, which may be ready and selected in T + 2; the
// dispatcher sees the task in T + 3. The end of a task that unblocks its queue has the same latency.
//
// Each queue has a credit for OwnCells requests and shares SharedCells with the others. Cells have no owner: the
// credits only bound the number of a queue. A last packet that waits for the completion handler keeps its cell, on the
// credit of its queue, which has no other request then.
//
// Requests and the links between them are in memories. The link of a popped request is read in the next cycle, when it
// replaces the head of its queue.
module pspin_mpq
  import pspin_pkg::*;
#(
  parameter int unsigned Queues      = 8,  // a power of two
  parameter int unsigned SharedCells = 4,
  parameter int unsigned OwnCells    = 1,  // at least 1
  parameter int unsigned IdWidth     = 10,  // width of message numbers
  parameter int unsigned Width       = 8,   // width of the rest of a request
  parameter int unsigned TasksWidth  = 8,   // width of the counter of a message's unfinished tasks and skipped packets
  parameter int unsigned SkipsWidth  = 8,   // width of the counter of skipped packets among them
  localparam int unsigned QueueWidth = $clog2(Queues)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // Requests of the NIC.
  input  logic                  her_valid_i,
  output logic                  her_ready_o,
  input  logic [IdWidth-1:0]    her_message_i,
  input  logic                  her_eom_i,
  input  logic [2:0]            her_roles_i,    // handlers of the message, by role_e
  input  logic [Width-1:0]      her_data_i,

  // Tasks to the dispatcher, and packets without a handler to run.
  output logic                  task_valid_o,
  input  logic                  task_ready_i,
  output logic [QueueWidth-1:0] task_queue_o,
  output role_e                 task_role_o,
  output logic                  task_feeds_back_o,
  output logic                  task_skips_o,
  output logic                  task_resets_o,  // skipped because its message is given up
  output logic [Width-1:0]      task_data_o,

  // Ends of tasks and of skipped packets, from the feedback.
  input  logic                  done_valid_i,
  input  logic [QueueWidth-1:0] done_queue_i,
  input  logic                  done_failed_i,
  input  logic                  done_skipped_i,
  output logic                  done_last_o,    // it ends the message

  // Messages given up by the driver.
  input  logic                  reset_valid_i,
  input  logic [IdWidth-1:0]    reset_message_i,
  output logic                  reset_done_o,   // the message exists
  output logic                  reset_free_o,   // its queue is free now; otherwise the last feedback frees it

  // Idle time-out: gives up the message of a queue unless the driver or an end precedes it.
  input  logic                  idle_valid_i,
  input  logic [QueueWidth-1:0] idle_queue_i,
  output logic                  idle_done_o,
  output logic                  idle_free_o,
  output logic [IdWidth-1:0]    idle_message_o,
  output logic                  touch_o,        // request accepted
  output logic                  touch_new_o,    // first request of a message
  output logic [QueueWidth-1:0] touched_o,
  output logic [Queues-1:0]     active_o,       // queues with a message that is not given up
  output logic [Queues-1:0]     free_o
);

  localparam int unsigned Cells       = Queues * OwnCells + SharedCells;
  localparam int unsigned CellWidth   = $clog2(Cells);
  localparam int unsigned LengthWidth = $clog2(OwnCells + SharedCells + 1);
  localparam int unsigned SharedWidth = SharedCells > 0 ? $clog2(SharedCells + 1) : 1;
  localparam int unsigned TagWidth    = IdWidth > QueueWidth ? IdWidth - QueueWidth : 1;

  // Bits of the message number beyond the queue index.
  function automatic logic [TagWidth-1:0] tag(logic [IdWidth-1:0] message);
    return TagWidth'(message >> QueueWidth);
  endfunction

  // Queues.
  mpq_state_e             state_q   [Queues];
  logic [TagWidth-1:0]    tag_q     [Queues];
  logic [2:0]             roles_q   [Queues];
  logic [LengthWidth-1:0] length_q  [Queues];
  logic [TasksWidth-1:0]  running_q [Queues];
  logic [SkipsWidth-1:0]  skipped_q [Queues];
  logic [CellWidth-1:0]   head_q    [Queues];  // also holds the last packet that waits for the completion handler
  logic [CellWidth-1:0]   tail_q    [Queues];
  logic [Queues-1:0]      ended_q, failed_q, has_last_q;

  // Cells.
  logic [Cells-1:0]       used_q;
  logic [SharedWidth-1:0] shared_q;            // credits left
  logic [CellWidth-1:0]   free_cell;

  ////////////////
  // Acceptance //
  ////////////////

  logic [QueueWidth-1:0] q_in;
  logic                  accepts, is_new, is_mine, takes_shared;

  assign q_in         = her_message_i[QueueWidth-1:0];
  assign is_new       = state_q[q_in] == MpqFree;
  assign is_mine      = tag_q[q_in] == tag(her_message_i) && !ended_q[q_in] && state_q[q_in] != MpqReset;
  assign takes_shared = length_q[q_in] >= LengthWidth'(OwnCells);
  assign her_ready_o  = (is_new || is_mine) && (!takes_shared || shared_q != '0);
  assign accepts      = her_valid_i && her_ready_o;
  assign touch_o      = accepts;
  assign touch_new_o  = accepts && is_new;
  assign touched_o    = q_in;

  // Credits guarantee a free cell.
  logic unused_free_valid;

  pspin_first #(
    .N(Cells)
  ) u_free (
    .bits_i (~used_q),
    .valid_o(unused_free_valid),
    .index_o(free_cell)
  );

  //////////
  // Ends //
  //////////

  mpq_state_e            done_state_d;
  logic [TasksWidth-1:0] done_running;
  logic                  done_has_packets;

  assign done_running     = running_q[done_queue_i] - 1'b1;
  assign done_has_packets = length_q[done_queue_i] != '0 || has_last_q[done_queue_i];

  always_comb begin
    done_state_d = state_q[done_queue_i];
    unique case (state_q[done_queue_i])
      MpqHeaderRunning: done_state_d = MpqPayload;
      MpqDraining: begin
        if (done_running == '0) done_state_d = has_last_q[done_queue_i] ? MpqCompletion : MpqFree;
      end
      MpqCompletionRunning: if (done_running == '0) done_state_d = MpqFree;
      MpqReset: if (done_running == '0 && !done_has_packets) done_state_d = MpqFree;
      default: ;
    endcase
  end

  ////////////
  // Resets //
  ////////////

  logic [QueueWidth-1:0] q_reset;
  logic                  resets, reset_frees, ends_reset, is_given, is_meant;

  assign q_reset  = reset_valid_i ? reset_message_i[QueueWidth-1:0] : idle_queue_i;
  assign is_given = state_q[q_reset] inside {MpqFree, MpqReset};
  assign is_meant = reset_valid_i ? tag_q[q_reset] == tag(reset_message_i)
                                  : idle_valid_i && !ends_reset && !(accepts && q_in == q_reset);
  assign resets   = is_meant && !is_given;

  // The message is empty: no running task, counting an end in this cycle, and no packet, counting an arrival.
  assign ends_reset  = done_valid_i && done_queue_i == q_reset;
  assign reset_frees = running_q[q_reset] == TasksWidth'(ends_reset) && length_q[q_reset] == '0 && !has_last_q[q_reset]
                     && !(accepts && q_in == q_reset);
  assign done_last_o = done_valid_i && (resets && ends_reset ? reset_frees : done_state_d == MpqFree);

  assign reset_done_o   = reset_valid_i && resets;
  assign reset_free_o   = reset_done_o && reset_frees && !ends_reset;
  assign idle_done_o    = !reset_valid_i && resets;
  assign idle_free_o    = idle_done_o && reset_frees;
  assign idle_message_o = IdWidth'({tag_q[idle_queue_i], idle_queue_i});

  ///////////////
  // Selection //
  ///////////////

  logic [Queues-1:0]     ready_q, ready_d, may_give;
  logic [QueueWidth-1:0] q_out;
  logic                  any_ready, selects, gives, pops, frees_cell, keeps_last;
  logic                  is_eom, runs, completes, is_idle, is_shared;
  mpq_state_e            out_state_d;
  role_e                 role_d;
  logic                  feeds_back_d, skips_d;
  logic [TasksWidth-1:0] out_running;
  logic [CellWidth-1:0]  out_cell;
  logic                  valid_q;

  pspin_rr_arbiter #(
    .N(Queues)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .requests_i(may_give),
    .take_i    (selects),
    .valid_o   (any_ready),
    .index_o   (q_out)
  );

  // A message given up in this cycle gives nothing.
  assign may_give    = ready_q & ~(Queues'(resets) << q_reset);
  assign selects     = any_ready && (!valid_q || task_ready_i);
  assign is_eom      = ended_q[q_out] && length_q[q_out] == LengthWidth'(1);
  assign runs        = roles_q[q_out][RolePayload] && !failed_q[q_out];
  assign completes   = is_eom && roles_q[q_out][RoleCompletion] && !failed_q[q_out];
  // A request arriving in this cycle takes its credit before the leaving one returns its own.
  assign is_shared   = length_q[q_out] > LengthWidth'(OwnCells)
                     || (length_q[q_out] == LengthWidth'(OwnCells) && accepts && q_in == q_out);
  // A task that ends in this cycle no longer runs.
  assign out_running = running_q[q_out] - TasksWidth'(done_valid_i && done_queue_i == q_out);
  assign is_idle     = out_running == '0 && !runs;

  always_comb begin
    out_state_d  = state_q[q_out];
    gives        = 1'b1;
    pops         = 1'b0;
    keeps_last   = 1'b0;
    role_d       = RolePayload;
    feeds_back_d = 1'b1;
    skips_d      = 1'b0;
    unique case (state_q[q_out])
      MpqHeader: begin
        out_state_d  = MpqHeaderRunning;
        role_d       = RoleHeader;
        feeds_back_d = 1'b0;
      end
      MpqPayload: begin
        pops         = 1'b1;
        keeps_last   = completes;
        gives        = runs || !completes;
        feeds_back_d = !completes;
        skips_d      = !runs;
        if (is_eom) out_state_d = completes && is_idle ? MpqCompletion : MpqDraining;
      end
      MpqCompletion: begin
        out_state_d = MpqCompletionRunning;
        role_d      = RoleCompletion;
      end
      default: begin  // MpqReset
        pops    = length_q[q_out] != '0;
        skips_d = 1'b1;
      end
    endcase
  end

  // A cell is free after the last read of its packet.
  assign frees_cell = selects && ((pops && !keeps_last) || state_q[q_out] == MpqCompletion || (state_q[q_out] == MpqReset && !pops));

  // The request behind the popped one becomes the head in the next cycle.
  logic                  fetches, fetched_q;
  logic [QueueWidth-1:0] q_fetched_q;
  logic [CellWidth-1:0]  link;

  assign fetches  = selects && pops && length_q[q_out] != LengthWidth'(1);
  assign out_cell = fetched_q && q_fetched_q == q_out ? link : head_q[q_out];

  // True if a queue could give a task or packet.
  function automatic logic could_give(mpq_state_e state, logic has_waiting, logic has_last, logic only_skipped);
    unique case (state)
      MpqHeader, MpqPayload: return has_waiting;
      MpqCompletion:         return 1'b1;
      MpqReset:              return only_skipped && (has_waiting || has_last);
      default:               return 1'b0;
    endcase
  endfunction

  always_comb begin
    for (int unsigned i = 0; i < Queues; i++) begin
      ready_d[i] = could_give(state_q[i], length_q[i] != '0, has_last_q[i], running_q[i] == TasksWidth'(skipped_q[i]));
    end
    // A selection takes effect at once for its queue.
    if (selects) begin
      ready_d[q_out] = could_give(
          out_state_d,
          length_q[q_out] > LengthWidth'(pops),
          keeps_last || (has_last_q[q_out] && pops),
          running_q[q_out] + TasksWidth'(gives) == TasksWidth'(skipped_q[q_out]) + TasksWidth'(gives && skips_d)
      );
    end
    if (resets) ready_d[q_reset] = 1'b0;
  end

  ///////////////
  // Registers //
  ///////////////

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < Queues; i++) begin
        state_q[i]   <= MpqFree;
        length_q[i]  <= '0;
        running_q[i] <= '0;
        skipped_q[i] <= '0;
      end
      ended_q    <= '0;
      failed_q   <= '0;
      has_last_q <= '0;
      used_q     <= '0;
      shared_q   <= SharedWidth'(SharedCells);
      ready_q    <= '0;
      valid_q    <= 1'b0;
      fetched_q  <= 1'b0;
    end else begin
      ready_q   <= ready_d;
      fetched_q <= fetches;
      shared_q  <= shared_q - SharedWidth'(accepts && takes_shared)
                 + SharedWidth'(selects && pops && is_shared);

      if (done_valid_i) begin
        state_q[done_queue_i]   <= done_state_d;
        running_q[done_queue_i] <= done_running;
        skipped_q[done_queue_i] <= skipped_q[done_queue_i] - SkipsWidth'(done_skipped_i);
        if (state_q[done_queue_i] == MpqHeaderRunning && done_failed_i) failed_q[done_queue_i] <= 1'b1;
      end

      if (selects) begin
        state_q[q_out]   <= out_state_d;
        running_q[q_out] <= out_running + TasksWidth'(gives);
        skipped_q[q_out] <= skipped_q[q_out] + SkipsWidth'(gives && skips_d)
                          - SkipsWidth'(done_valid_i && done_skipped_i && done_queue_i == q_out);
        length_q[q_out]  <= length_q[q_out] - LengthWidth'(pops);
        if (keeps_last) has_last_q[q_out] <= 1'b1;
        else if (!pops && state_q[q_out] != MpqHeader) has_last_q[q_out] <= 1'b0;
        if (frees_cell) used_q[out_cell] <= 1'b0;
      end

      if (resets) state_q[q_reset] <= reset_frees ? MpqFree : MpqReset;

      if (accepts) begin
        if (is_new) begin
          state_q[q_in]  <= her_roles_i[RoleHeader] ? MpqHeader : MpqPayload;
          failed_q[q_in] <= 1'b0;
        end
        ended_q[q_in]     <= her_eom_i;
        length_q[q_in]    <= length_q[q_in] + 1'b1 - LengthWidth'(selects && pops && q_out == q_in);
        used_q[free_cell] <= 1'b1;
      end

      if (selects) valid_q <= gives;
      else if (task_ready_i) valid_q <= 1'b0;
    end
  end

  logic is_alone;  // the arriving request is the only one of its queue
  assign is_alone = length_q[q_in] == LengthWidth'(selects && pops && q_out == q_in);

  always_ff @(posedge clk_i) begin
    if (selects) begin
      task_queue_o      <= q_out;
      task_role_o       <= role_d;
      task_feeds_back_o <= feeds_back_d;
      task_skips_o      <= skips_d;
      task_resets_o     <= state_q[q_out] == MpqReset;
    end
    if (fetches) q_fetched_q <= q_out;
    if (fetched_q) head_q[q_fetched_q] <= link;
    if (accepts) begin
      tag_q[q_in] <= tag(her_message_i);
      if (is_new) roles_q[q_in] <= her_roles_i;
      tail_q[q_in] <= free_cell;
      if (is_alone) head_q[q_in] <= free_cell;
    end
  end

  assign task_valid_o = valid_q;

  always_comb begin
    for (int unsigned i = 0; i < Queues; i++) begin
      free_o[i]   = state_q[i] == MpqFree;
      active_o[i] = !(state_q[i] inside {MpqFree, MpqReset});
    end
  end

  pspin_sram_2p #(
    .Rows (Cells),
    .Width(Width)
  ) u_cells (
    .clk_i,
    .we_i   (accepts),
    .wrow_i (free_cell),
    .wdata_i(her_data_i),
    .re_i   (selects),
    .rrow_i (out_cell),
    .rdata_o(task_data_o)
  );

  pspin_sram_2p #(
    .Rows (Cells),
    .Width(CellWidth)
  ) u_links (
    .clk_i,
    .we_i   (accepts && !is_alone),
    .wrow_i (tail_q[q_in]),
    .wdata_i(free_cell),
    .re_i   (fetches),
    .rrow_i (out_cell),
    .rdata_o(link)
  );

endmodule
