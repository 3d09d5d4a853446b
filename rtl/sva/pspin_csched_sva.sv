// SPDX-License-Identifier: Apache-2.0
// Invariants of a cluster's scheduler, and coverage: each state transition of a slot, and the combinations of events in
// one cycle.
module pspin_csched_sva
  import pspin_pkg::*;
#(
  parameter int unsigned Tasks = 20,
  parameter int unsigned Hpus  = 8,
  localparam int unsigned PlaceWidth = Tasks > 1 ? $clog2(Tasks) : 1,
  localparam int unsigned TasksWidth = $clog2(Tasks + 1)
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic [SizeWidth-1:0]  offer_transfer_i,
  input logic                  has_room_o,
  input logic                  has_place,
  input logic [TasksWidth-1:0] tasks_o,
  input logic                  send_valid_i,
  input task_t                 send_i,
  input logic [PlaceWidth-1:0] send_place_o,
  input logic                  landed_valid_i,
  input logic [PlaceWidth-1:0] landed_place_i,
  input logic [Tasks-1:0]      free_q,
  input logic [Tasks-1:0]      landed_q,
  input logic [Tasks-1:0]      landed_now,
  input logic                  waits,
  input logic                  has_idle,
  input logic                  may_assign,
  input logic [PlaceWidth-1:0] first,
  input logic [Hpus-1:0]       assign_valid_o,
  input logic [Hpus-1:0]       idle_i,
  input logic [Hpus-1:0]       done_valid_i,
  input logic [PlaceWidth-1:0] done_place_i [Hpus],
  input logic                  done_valid_o,
  input logic                  done_ready_i,
  input logic [PlaceWidth-1:0] done_place,
  input logic                  leaves
);

  typedef enum logic [1:0] {
    Free,
    Flying,   // the packet is in flight
    Landed,
    Assigned
  } place_e;

  ///////////
  // Rules //
  ///////////

  logic [Tasks-1:0] assigned_q, ends;
  logic             live_q, is_clash;
  place_e           state [Tasks];
  place_e           was_q [Tasks];
  logic [15:0]      moves;

  // True for a legal transition of a slot.
  function automatic logic is_legal(place_e from, place_e to);
    unique case (from)
      Free:    return to inside {Free, Flying, Landed};
      Flying:  return to != Free;
      Landed:  return to inside {Landed, Assigned};
      default: return to inside {Assigned, Free};
    endcase
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      live_q     <= 1'b0;
      assigned_q <= '0;
    end else begin
      live_q <= 1'b1;
      if (leaves) assigned_q[done_place] <= 1'b0;
      if (may_assign) assigned_q[first] <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) was_q <= state;

  always_comb begin
    ends     = '0;
    is_clash = 1'b0;
    for (int unsigned h = 0; h < Hpus; h++) begin
      if (done_valid_i[h]) begin
        is_clash            = is_clash || ends[done_place_i[h]];
        ends[done_place_i[h]] = 1'b1;
      end
    end
    moves = '0;
    for (int unsigned i = 0; i < Tasks; i++) begin
      state[i] = free_q[i] ? Free : assigned_q[i] ? Assigned : landed_q[i] ? Landed : Flying;
      moves[{was_q[i], state[i]}] = 1'b1;
    end
  end

  logic is_lawful;
  always_comb begin
    is_lawful = 1'b1;
    for (int unsigned from = 0; from < 4; from++) begin
      for (int unsigned to = 0; to < 4; to++) begin
        if (moves[from*4+to] && !is_legal(place_e'(from), place_e'(to))) is_lawful = 1'b0;
      end
    end
  end

  Moves : assert property (@(posedge clk_i) disable iff (!rst_ni) !live_q || is_lawful);
  Counts : assert property (@(posedge clk_i) disable iff (!rst_ni) 32'(tasks_o) == $countones(~free_q));
  SentToRoom : assert property (@(posedge clk_i) disable iff (!rst_ni) !send_valid_i || has_room_o);
  SentAsOffered : assert property (@(posedge clk_i) disable iff (!rst_ni) !send_valid_i || send_i.her.transfer == offer_transfer_i);
  LandsOnce : assert property (@(posedge clk_i) disable iff (!rst_ni) !landed_valid_i || state[landed_place_i] == Flying);
  EndsOnce : assert property (@(posedge clk_i) disable iff (!rst_ni) (ends & ~assigned_q) == '0 && !is_clash);
  OnlyIdle : assert property (@(posedge clk_i) disable iff (!rst_ni) $onehot0(assign_valid_o));

  //////////////
  // Coverage //
  //////////////

  for (genvar from = 0; from < 4; from++) begin : g_from
    for (genvar to = 0; to < 4; to++) begin : g_to
      if (is_legal(place_e'(from), place_e'(to))) begin : g_legal
        Transition : cover property (@(posedge clk_i) disable iff (!rst_ni) live_q && moves[from*4+to]);
      end
    end
  end

  Full : cover property (@(posedge clk_i) disable iff (!rst_ni) !has_place);
  BufferFull : cover property (@(posedge clk_i) disable iff (!rst_ni) has_place && !has_room_o);
  Nothing : cover property (@(posedge clk_i) disable iff (!rst_ni) send_valid_i && offer_transfer_i == '0);
  LandsAndGoes : cover property (@(posedge clk_i) disable iff (!rst_ni) may_assign && landed_valid_i && landed_place_i == first);
  NoIdle : cover property (@(posedge clk_i) disable iff (!rst_ni) waits && landed_q[first] && !has_idle);
  Behind : cover property (@(posedge clk_i) disable iff (!rst_ni)
    waits && !landed_now[first] && has_idle && (landed_q & ~assigned_q & ~free_q) != '0);
  SendAndLeave : cover property (@(posedge clk_i) disable iff (!rst_ni) send_valid_i && leaves);
  LastLeaves : cover property (@(posedge clk_i) disable iff (!rst_ni) leaves && 32'(tasks_o) == 1);
  Compete : cover property (@(posedge clk_i) disable iff (!rst_ni) leaves && !$onehot(done_valid_i));
  Held : cover property (@(posedge clk_i) disable iff (!rst_ni) done_valid_o && !done_ready_i);
  EndAndAssign : cover property (@(posedge clk_i) disable iff (!rst_ni) may_assign && leaves);

endmodule

bind pspin_csched pspin_csched_sva #(
  .Tasks(Tasks),
  .Hpus (Hpus)
) u_sva (.*);
