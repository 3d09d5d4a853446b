// SPDX-License-Identifier: Apache-2.0
// Invariants of an HPU driver, and coverage: each register, each wait and its end, each kind of end of a task.
module pspin_hpu_driver_sva
  import pspin_pkg::*;
#(
  parameter int unsigned Tasks    = 20,
  parameter int unsigned Commands = 4,
  parameter int unsigned Buffered = 1,
  localparam int unsigned PlaceWidth    = Tasks > 1 ? $clog2(Tasks) : 1,
  localparam int unsigned BufferedWidth = $clog2(Buffered + 1)
) (
  input logic                     clk_i,
  input logic                     rst_ni,
  input logic                     enable_i,
  input logic                     drops,
  input logic                     access_valid_i,
  input logic                     rvalid_o,
  input logic                     stop_i,
  input logic                     abort_i,
  input logic [3:0]               register_q,
  input logic                     stores_q,
  input logic                     acts,
  input logic                     has_task_q,
  input logic                     is_ready_q,
  input logic                     is_open_q,
  input logic                     is_idle_q,
  input logic                     is_new_q,
  input logic                     assign_valid_i,
  input logic                     start_o,
  input logic                     end_o,
  input outcome_t                 end_outcome_o,
  input logic                     ends_i,
  input logic                     bites_o,
  input logic                     misuse_o,
  input outcome_t                 misuse_outcome_o,
  input logic                     has_landed,
  input logic [BufferedWidth-1:0] count_q,
  input logic                     done_valid_o,
  input logic                     done_ready_i,
  input logic [PlaceWidth-1:0]    done_place_o,
  input outcome_t                 done_outcome_o,
  input logic                     command_valid_o,
  input logic                     command_ready_i,
  input command_t                 command_o,
  input logic                     responds,
  input logic                     response_valid_i,
  input logic                     refused,
  input logic                     refused_finished,
  input logic                     fails_q,
  input logic                     reports,
  input logic [Commands-1:0]      orphans_o,
  input logic                     transfer_valid_o,
  input logic                     transfer_landed_i,
  input logic                     launched,
  input logic                     console_valid_o,
  input logic                     console_ready_i
);

  // Encoding of pspin_hpu_driver.
  localparam logic [3:0] None = 0, Function = 1, Task = 2, Doorbell = 3, Issue = 4, Wait = 5, Test = 6, Command = 7, Error = 8,
                         Transfer = 9, Launch = 10, Landed = 11, Terminate = 12, Output = 13;

  logic live_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) live_q <= 1'b0;
    else live_q <= 1'b1;
  end

  ///////////
  // Rules //
  ///////////

  OneAccess : assert property (@(posedge clk_i) disable iff (!rst_ni) !access_valid_i || register_q == None || rvalid_o);
  AnswersOne : assert property (@(posedge clk_i) disable iff (!rst_ni) !rvalid_o || register_q != None);
  StoppedIsQuiet : assert property (@(posedge clk_i) disable iff (!rst_ni) !stop_i ||
    !(rvalid_o || start_o || misuse_o || transfer_valid_o || console_valid_o));
  IdleHasNone : assert property (@(posedge clk_i) disable iff (!rst_ni) !(is_idle_q && has_task_q));
  AssignedIdle : assert property (@(posedge clk_i) disable iff (!rst_ni) !assign_valid_i || is_idle_q || !enable_i);
  RunsTask : assert property (@(posedge clk_i) disable iff (!rst_ni) !(is_ready_q || is_open_q) || has_task_q);
  ReadyOrOpen : assert property (@(posedge clk_i) disable iff (!rst_ni) !(is_ready_q && is_open_q));
  BitesTask : assert property (@(posedge clk_i) disable iff (!rst_ni) !bites_o || has_task_q);
  EndsLanded : assert property (@(posedge clk_i) disable iff (!rst_ni) !end_o || has_landed);
  Buffers : assert property (@(posedge clk_i) disable iff (!rst_ni) 32'(count_q) <= Buffered);
  EndsSo : assert property (@(posedge clk_i) disable iff (!rst_ni)
    !end_o || !has_task_q || end_outcome_o.kind inside {EndDone, EndFaulted, EndTimedOut, EndMessageReset});

  // An offer is stable until accepted; that of a transfer or a character, unless the handler is stopped.
  CommandStays : assert property (@(posedge clk_i) disable iff (!rst_ni || !live_q)
    command_valid_o && !command_ready_i |=> command_valid_o && $stable(command_o));
  DoneStays : assert property (@(posedge clk_i) disable iff (!rst_ni || !live_q)
    done_valid_o && !done_ready_i |=> done_valid_o && $stable(done_place_o) && $stable(done_outcome_o));
  ConsoleStays : assert property (@(posedge clk_i) disable iff (!rst_ni || !live_q)
    console_valid_o && !console_ready_i |=> console_valid_o || stop_i);

  //////////////
  // Coverage //
  //////////////

  for (genvar i = 1; i < 14; i++) begin : g_register
    Load : cover property (@(posedge clk_i) disable iff (!rst_ni) rvalid_o && register_q == 4'(i) && !stores_q);
    Store : cover property (@(posedge clk_i) disable iff (!rst_ni) rvalid_o && register_q == 4'(i) && stores_q);
  end

  for (genvar i = 1; i < 14; i++) begin : g_wait
    if (i inside {Function, Doorbell, Issue, Wait, Launch, Output}) begin : g_can
      Held : cover property (@(posedge clk_i) disable iff (!rst_ni) acts && register_q == 4'(i) && !rvalid_o && !misuse_o);
      Killed : cover property (@(posedge clk_i) disable iff (!rst_ni) stop_i && bites_o && register_q == 4'(i));
    end
  end

  HeldForTransfers : cover property (@(posedge clk_i) disable iff (!rst_ni) acts && register_q == Doorbell && !has_landed);
  HeldForPlace : cover property (@(posedge clk_i) disable iff (!rst_ni)
    acts && register_q == Doorbell && has_landed && has_task_q && !end_o);
  EndsWithLanding : cover property (@(posedge clk_i) disable iff (!rst_ni) end_o && transfer_landed_i);
  AtOnce : cover property (@(posedge clk_i) disable iff (!rst_ni) start_o && is_new_q);
  EndsDone : cover property (@(posedge clk_i) disable iff (!rst_ni) end_o && has_task_q && end_outcome_o.kind == EndDone);
  EndsReported : cover property (@(posedge clk_i) disable iff (!rst_ni) end_o && !ends_i && end_outcome_o.cause == CauseReported);
  EndsRefused : cover property (@(posedge clk_i) disable iff (!rst_ni) end_o && !ends_i && end_outcome_o.cause == CauseHost);
  EndsRecovered : cover property (@(posedge clk_i) disable iff (!rst_ni) end_o && ends_i && has_task_q);
  EndsDropped : cover property (@(posedge clk_i) disable iff (!rst_ni) drops && end_o);
  DropHeld : cover property (@(posedge clk_i) disable iff (!rst_ni) drops && !end_o);
  EndsNothing : cover property (@(posedge clk_i) disable iff (!rst_ni) end_o && !has_task_q);
  RecoveryHeld : cover property (@(posedge clk_i) disable iff (!rst_ni) ends_i && !end_o);
  RefusedLate : cover property (@(posedge clk_i) disable iff (!rst_ni) refused && refused_finished);
  RefusedInTime : cover property (@(posedge clk_i) disable iff (!rst_ni) refused && !refused_finished && has_task_q);
  RefusedAtEnd : cover property (@(posedge clk_i) disable iff (!rst_ni) refused && end_o);
  FailsTwice : cover property (@(posedge clk_i) disable iff (!rst_ni) fails_q && (reports || refused));
  OtherResponse : cover property (@(posedge clk_i) disable iff (!rst_ni) response_valid_i && !responds);
  Orphan : cover property (@(posedge clk_i) disable iff (!rst_ni) orphans_o != '0);
  Misused : cover property (@(posedge clk_i) disable iff (!rst_ni) misuse_o && misuse_outcome_o.cause == CauseCommand);
  NoCommand : cover property (@(posedge clk_i) disable iff (!rst_ni) misuse_o && misuse_outcome_o.cause == CauseLoad);
  LaunchesAndLands : cover property (@(posedge clk_i) disable iff (!rst_ni) launched && transfer_landed_i);
  FeedbackHeld : cover property (@(posedge clk_i) disable iff (!rst_ni) done_valid_o && !done_ready_i);
  CommandHeld : cover property (@(posedge clk_i) disable iff (!rst_ni) command_valid_o && !command_ready_i);
  Forgotten : cover property (@(posedge clk_i) disable iff (!rst_ni) abort_i && register_q != None);

endmodule

bind pspin_hpu_driver pspin_hpu_driver_sva #(
  .Tasks   (Tasks),
  .Commands(Commands),
  .Buffered(Buffered)
) u_sva (.*);
