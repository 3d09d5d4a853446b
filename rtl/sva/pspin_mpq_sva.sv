// SPDX-License-Identifier: Apache-2.0
// Invariants of the queue engine, and coverage: each state, each transition, and each pair of events of a queue in one
// cycle.
module pspin_mpq_sva
  import pspin_pkg::*;
#(
  parameter int unsigned Queues      = 8,
  parameter int unsigned SharedCells = 4,
  parameter int unsigned OwnCells    = 1,
  parameter int unsigned LengthWidth = 3,
  parameter int unsigned SharedWidth = 3,
  parameter int unsigned TasksWidth  = 8,
  parameter int unsigned SkipsWidth  = 8,
  localparam int unsigned QueueWidth = $clog2(Queues)
) (
  input logic                   clk_i,
  input logic                   rst_ni,
  input mpq_state_e             state_q   [Queues],
  input logic [LengthWidth-1:0] length_q  [Queues],
  input logic [TasksWidth-1:0]  running_q [Queues],
  input logic [SkipsWidth-1:0]  skipped_q [Queues],
  input logic [Queues-1:0]      ended_q,
  input logic [Queues-1:0]      has_last_q,
  input logic [Queues-1:0]      ready_q,
  input logic [SharedWidth-1:0] shared_q,
  input logic                   her_valid_i,
  input logic                   her_ready_o,
  input logic                   accepts,
  input logic [QueueWidth-1:0]  q_in,
  input logic                   selects,
  input logic [QueueWidth-1:0]  q_out,
  input logic                   done_valid_i,
  input logic [QueueWidth-1:0]  done_queue_i,
  input logic                   resets,
  input logic [QueueWidth-1:0]  q_reset,
  input logic                   task_valid_o,
  input logic                   task_ready_i
);

  localparam int unsigned States = 8;

  // Legal transitions; any message may be given up, and is free at once if it is empty.
  function automatic logic is_legal(mpq_state_e from, mpq_state_e to);
    unique case (from)
      MpqFree:              return to inside {MpqHeader, MpqPayload};
      MpqHeader:            return to inside {MpqHeaderRunning, MpqReset};
      MpqHeaderRunning:     return to inside {MpqPayload, MpqReset};
      MpqPayload:           return to inside {MpqDraining, MpqCompletion, MpqReset, MpqFree};
      MpqDraining:          return to inside {MpqCompletion, MpqFree, MpqReset};
      MpqCompletion:        return to inside {MpqCompletionRunning, MpqReset};
      MpqCompletionRunning: return to inside {MpqFree, MpqReset};
      default:              return to == MpqFree;
    endcase
  endfunction

  ///////////
  // Rules //
  ///////////

  // Loops instead of an assertion per queue: a simulation of 256 queues would be slow.
  mpq_state_e          was_q [Queues];
  logic [Queues-1:0]   fits, gives, moves;
  logic [States-1:0]   states;
  logic [States**2-1:0] transitions;
  logic [31:0]         lent;
  logic                live_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) live_q <= 1'b0;
    else live_q <= 1'b1;
  end

  always_ff @(posedge clk_i) was_q <= state_q;

  always_comb begin
    states      = '0;
    transitions = '0;
    lent        = '0;
    for (int unsigned i = 0; i < Queues; i++) begin
      logic has_waiting, only_skipped;
      has_waiting  = length_q[i] != '0;
      only_skipped = running_q[i] == TasksWidth'(skipped_q[i]);

      // Allowed contents of a queue in each state.
      unique case (state_q[i])
        MpqFree:              fits[i] = running_q[i] == '0 && !has_waiting && !has_last_q[i];
        MpqHeader:            fits[i] = running_q[i] == '0 && has_waiting && !has_last_q[i];
        MpqHeaderRunning:     fits[i] = running_q[i] == 1 && skipped_q[i] == '0 && has_waiting && !has_last_q[i];
        MpqPayload:           fits[i] = !has_last_q[i] && (!ended_q[i] || has_waiting);
        MpqDraining:          fits[i] = running_q[i] != '0 && !has_waiting && ended_q[i];
        MpqCompletion:        fits[i] = running_q[i] == '0 && !has_waiting && ended_q[i] && has_last_q[i];
        MpqCompletionRunning: fits[i] = running_q[i] == 1 && skipped_q[i] == '0 && !has_waiting && ended_q[i] && !has_last_q[i];
        default:              fits[i] = (running_q[i] != '0 || has_waiting || has_last_q[i])
                                      && !(has_last_q[i] && (has_waiting || !ended_q[i]));
      endcase
      // All packets of a message are skipped, or handlers run on all; in one that is given up, these end first.
      if (skipped_q[i] != '0 && !only_skipped) fits[i] = 1'b0;

      // A selectable queue has a task or packet to give.
      gives[i] = !ready_q[i] || (state_q[i] inside {MpqHeader, MpqPayload} && has_waiting) || state_q[i] == MpqCompletion
               || (state_q[i] == MpqReset && only_skipped && (has_waiting || has_last_q[i]));

      moves[i] = was_q[i] == state_q[i] || is_legal(was_q[i], state_q[i]);
      states[state_q[i]] = 1'b1;
      transitions[{was_q[i], state_q[i]}] = 1'b1;
      if (length_q[i] > LengthWidth'(OwnCells)) lent = lent + 32'(length_q[i]) - OwnCells;
    end
  end

  Fits : assert property (@(posedge clk_i) disable iff (!rst_ni) &fits);
  Gives : assert property (@(posedge clk_i) disable iff (!rst_ni) &gives);
  Moves : assert property (@(posedge clk_i) disable iff (!rst_ni) !live_q || &moves);
  Credits : assert property (@(posedge clk_i) disable iff (!rst_ni) lent + 32'(shared_q) == SharedCells);

  //////////////
  // Coverage //
  //////////////

  for (genvar from = 0; from < States; from++) begin : g_from
    State : cover property (@(posedge clk_i) disable iff (!rst_ni) states[from]);
    for (genvar to = 0; to < States; to++) begin : g_to
      if (is_legal(mpq_state_e'(from), mpq_state_e'(to))) begin : g_legal
        Transition : cover property (@(posedge clk_i) disable iff (!rst_ni) live_q && transitions[from*States+to]);
      end
    end
  end

  AcceptAndSelect : cover property (@(posedge clk_i) disable iff (!rst_ni) accepts && selects && q_in == q_out);
  EndAndSelect : cover property (@(posedge clk_i) disable iff (!rst_ni) done_valid_i && selects && done_queue_i == q_out);
  EndAndAccept : cover property (@(posedge clk_i) disable iff (!rst_ni) done_valid_i && accepts && done_queue_i == q_in);
  ResetWhenReady : cover property (@(posedge clk_i) disable iff (!rst_ni) resets && ready_q[q_reset]);
  ResetAndEnd : cover property (@(posedge clk_i) disable iff (!rst_ni) resets && done_valid_i && q_reset == done_queue_i);
  ResetAndAccept : cover property (@(posedge clk_i) disable iff (!rst_ni) resets && accepts && q_reset == q_in);
  Refused : cover property (@(posedge clk_i) disable iff (!rst_ni) her_valid_i && !her_ready_o);
  NoCredits : cover property (@(posedge clk_i) disable iff (!rst_ni) shared_q == '0);
  Held : cover property (@(posedge clk_i) disable iff (!rst_ni) task_valid_o && !task_ready_i && ready_q != '0);

endmodule

bind pspin_mpq pspin_mpq_sva #(
  .Queues     (Queues),
  .SharedCells(SharedCells),
  .OwnCells   (OwnCells),
  .LengthWidth(LengthWidth),
  .SharedWidth(SharedWidth),
  .TasksWidth (TasksWidth),
  .SkipsWidth (SkipsWidth)
) u_sva (.*);
