// SPDX-License-Identifier: Apache-2.0
// Invariants of an HPU's recovery: a task ends once for each failure, only when it can, and with one outcome; and a
// core in reset does nothing.
module pspin_recovery_sva
  import pspin_pkg::*;
(
  input logic     clk_i,
  input logic     rst_ni,
  input logic     enable_i,
  input logic     traps_i,
  input logic     denied_i,
  input logic     misuse_i,
  input logic     bites_i,
  input logic     stop_o,
  input logic     abort_o,
  input logic     ends_o,
  input outcome_t outcome_o,
  input logic     can_end_i,
  input logic     core_rst_no,
  input logic     again_o
);

  default clocking @(posedge clk_i);
  endclocking
  default disable iff (!rst_ni);

  // Set if a failure occurred since the previous end.
  logic failed_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) failed_q <= 1'b0;
    else if (!enable_i || (ends_o && can_end_i)) failed_q <= 1'b0;
    else if (traps_i || denied_i || misuse_i || bites_i) failed_q <= 1'b1;
  end

  EndsFailure : assert property (ends_o |-> failed_q);
  EndsOnce : assert property (ends_o && can_end_i |=> !ends_o);
  EndStays : assert property (ends_o && !can_end_i && enable_i |=> ends_o && $stable(outcome_o));
  EndStops : assert property (ends_o |-> stop_o && core_rst_no && again_o);
  ResetStops : assert property (!core_rst_no |-> stop_o && abort_o);
  FailureResets : assert property ($rose(failed_q) && !$past(bites_i) && enable_i |-> !core_rst_no);

endmodule

bind pspin_recovery pspin_recovery_sva u_sva (.*);
