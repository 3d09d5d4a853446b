// SPDX-License-Identifier: Apache-2.0
// Recovery after a handler fails or is killed (PsPIN III-B2, B3): the core is reset, and its boot ROM returns to the
// runtime's loop, which starts TrapCycles after the failure, together with the end of the task. Handlers cannot change
// any code on this path.
//
// The core is also in reset while the unit is disabled, and then starts at the entry of the program. An access to a
// remote memory completes before.
module pspin_recovery
  import pspin_pkg::*;
#(
  parameter int unsigned TrapCycles = 20
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  // The host's registers.
  input  logic        enable_i,

  // From the core: an instruction traps, or its access is denied; it is in the execute stage, or was that many cycles
  // ago.
  input  logic        traps_i,
  input  logic [1:0]  trap_age_i,
  input  outcome_t    trap_i,
  input  logic        denied_i,
  input  logic        denied_early_i,  // the access would take a second cycle
  input  outcome_t    denial_i,

  // From the driver: misuse of a register, and expiry of the watchdog. From the accesses: one to a remote memory cannot
  // be cancelled, and completes first.
  input  logic        misuse_i,
  input  outcome_t    misuse_outcome_i,
  input  logic        bites_i,
  input  logic        remote_busy_i,

  // To the accesses of the HPU: none starts; and those in flight are cancelled.
  output logic        stop_o,
  output logic        abort_o,

  // To and from the driver: the task ends as soon as it can.
  output logic        ends_o,
  output outcome_t    outcome_o,
  input  logic        can_end_i,

  // To the core and its boot ROM: permission to leave for the program, and its entry.
  output logic        core_rst_no,
  output logic        may_leave_o,
  output logic        again_o
);

  // From the grant of the boot ROM's last instruction to the execution of the program's first one: fetch, decode, and a
  // jump.
  localparam int unsigned LeaveCycles = 5;
  localparam int unsigned ResetCycles = 3;
  localparam int unsigned End = TrapCycles + 1;
  localparam int unsigned CountWidth = $clog2(End + 1);
  typedef logic [CountWidth-1:0] count_t;

  typedef enum logic [1:0] {
    Off,
    Running,
    Recovering
  } state_e;

  if (TrapCycles < 16) begin : g_too_fast
    $fatal(1, "the boot ROM takes 16 cycles");
  end

  state_e   state_q;
  logic     killed_q, kills, fails, off_q, turns_off;
  outcome_t outcome_q, outcome;
  count_t   count_q, first;

  assign kills     = state_q == Running && (bites_i || killed_q);
  assign turns_off = !enable_i || off_q;
  assign stop_o    = kills || turns_off || state_q != Running;

  // A failure counts from the cycle after its access's or instruction's last one in the execute stage, in which the
  // driver acts; an unknown command counts as a denied access. `first` is the index of the next cycle: 1 for that one,
  // and End for the one in which the task ends.
  always_comb begin
    fails   = state_q == Running;
    outcome = trap_i;
    first   = count_t'(trap_age_i) + count_t'(1);
    if (kills) begin
      fails   = !remote_busy_i;
      outcome = '{EndTimedOut, CauseWatchdog, '0, '0};
      first   = count_t'(2);
    end else if (misuse_i) begin
      outcome = misuse_outcome_i;
      first   = misuse_outcome_i.cause == CauseLoad ? count_t'(3) : count_t'(2);
    end else if (denied_i) begin
      outcome = denial_i;
      first   = count_t'(!denied_early_i);
    end else begin
      fails = fails && traps_i;
    end
  end

  assign abort_o     = !core_rst_no;
  assign ends_o      = state_q == Recovering && count_q == count_t'(End);
  assign outcome_o   = outcome_q;
  assign may_leave_o = state_q == Running || (count_q >= count_t'(End - LeaveCycles) && can_end_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q     <= Off;
      killed_q    <= 1'b0;
      off_q       <= 1'b0;
      core_rst_no <= 1'b0;
      again_o     <= 1'b0;
      count_q     <= '0;
    end else begin
      unique case (state_q)
        Off: begin
          again_o     <= 1'b0;
          core_rst_no <= enable_i;
          if (enable_i) state_q <= Running;
        end
        Running: begin
          killed_q <= kills && remote_busy_i;
          if (fails) begin
            state_q     <= Recovering;
            core_rst_no <= 1'b0;
            again_o     <= 1'b1;
            count_q     <= first;
          end
        end
        default: begin
          if (count_q == count_t'(ResetCycles)) core_rst_no <= 1'b1;
          if (count_q != count_t'(End)) count_q <= count_q + 1'b1;
          else if (can_end_i) state_q <= Running;
        end
      endcase
      if (turns_off && state_q == Running && remote_busy_i) begin
        state_q     <= Running;
        core_rst_no <= 1'b1;
        off_q       <= 1'b1;
      end else if (turns_off) begin
        state_q     <= Off;
        killed_q    <= 1'b0;
        core_rst_no <= 1'b0;
        off_q       <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == Running && fails) outcome_q <= outcome;
  end

endmodule
