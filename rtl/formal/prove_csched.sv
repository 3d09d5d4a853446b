// SPDX-License-Identifier: Apache-2.0
// No task of a cluster is lost, and none is reported twice: each occupied slot is exactly one of queued, on its way to
// an HPU, running, or ended; so each task gives exactly one feedback, its own. An arbitrary task is watched. The HPUs
// run tasks for any time, and keep an ended one while they run the next.
module prove_csched
  import pspin_pkg::*;
#(
  parameter int unsigned Tasks = 3,
  parameter int unsigned Hpus  = 2,
  parameter int unsigned Units = 3,
  localparam int unsigned PlaceWidth = $clog2(Tasks),
  localparam int unsigned TasksWidth = $clog2(Tasks + 1)
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic                  send_i,
  input logic                  copies_i,
  input logic [2:0]            mpq_i,
  input logic                  watch_i,
  input logic                  landed_valid_i,
  input logic [PlaceWidth-1:0] landed_place_i,
  input logic [Hpus-1:0]       ends_i,
  input logic                  done_ready_i
);

  logic                  has_room, sends, done_valid, live_q = 1'b0;
  logic [SizeWidth-1:0]  transfer;
  task_t                 work;
  logic [PlaceWidth-1:0] send_place, assign_place;
  logic [Hpus-1:0]       assign_valid, done_ready;
  completion_t           done;
  logic [TasksWidth-1:0] tasks;

  logic                  unused_dma_valid;
  logic [PlaceWidth-1:0] unused_dma_place;
  logic [31:0]           unused_dma_from, unused_dma_to;
  logic [SizeWidth-1:0]  unused_dma_size;
  task_t                 unused_task;
  range_t                unused_packet;

  assign sends    = send_i && has_room;
  assign transfer = copies_i ? SizeWidth'(64) : '0;
  always_comb begin
    work              = '0;
    work.mpq          = 16'(mpq_i);
    work.her.transfer = transfer;
  end

  // The HPUs.
  logic [Hpus-1:0]       runs_q, ended_q, idle, leaves, moves;
  logic [PlaceWidth-1:0] running_q  [Hpus];
  logic [PlaceWidth-1:0] ended_in_q [Hpus];
  outcome_t              outcome    [Hpus];
  assign idle   = ~runs_q;
  assign leaves = ended_q & done_ready;
  assign moves  = runs_q & ends_i & (~ended_q | leaves);

  for (genvar h = 0; h < Hpus; h++) begin : gen_hpu
    assign outcome[h] = '0;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        runs_q[h]  <= 1'b0;
        ended_q[h] <= 1'b0;
      end else begin
        runs_q[h]  <= (runs_q[h] && !moves[h]) || assign_valid[h];
        ended_q[h] <= (ended_q[h] && !leaves[h]) || moves[h];
      end
    end
    always_ff @(posedge clk_i) begin
      if (assign_valid[h]) running_q[h] <= assign_place;
      if (moves[h]) ended_in_q[h] <= running_q[h];
    end
  end

  pspin_csched #(
    .Tasks       (Tasks),
    .Hpus        (Hpus),
    .BufferBytes (Units * 64),
    .SlotBytes   (64),
    .AssignCycles(1)
  ) u_csched (
    .clk_i,
    .rst_ni,
    .cluster_i       ('0),
    .buffer_i        ('0),
    .offer_transfer_i(transfer),
    .has_room_o      (has_room),
    .tasks_o         (tasks),
    .send_valid_i    (sends),
    .send_i          (work),
    .send_place_o    (send_place),
    .dma_valid_o     (unused_dma_valid),
    .dma_place_o     (unused_dma_place),
    .dma_from_o      (unused_dma_from),
    .dma_to_o        (unused_dma_to),
    .dma_size_o      (unused_dma_size),
    .landed_valid_i,
    .landed_place_i,
    .assign_valid_o  (assign_valid),
    .assign_place_o  (assign_place),
    .assign_task_o   (unused_task),
    .assign_packet_o (unused_packet),
    .idle_i          (idle),
    .done_valid_i    (ended_q),
    .done_ready_o    (done_ready),
    .done_place_i    (ended_in_q),
    .done_outcome_i  (outcome),
    .done_valid_o    (done_valid),
    .done_ready_i,
    .done_o          (done)
  );

  // Watched task.
  logic                  watches_q, is_told;
  logic [PlaceWidth-1:0] place_q;
  logic [2:0]            mpq_q;
  assign is_told = |leaves && u_csched.done_place == place_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) watches_q <= 1'b0;
    else if (!watches_q) watches_q <= sends && watch_i;
    else if (is_told) watches_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    live_q <= 1'b1;
    if (sends && watch_i && !watches_q) begin
      place_q <= send_place;
      mpq_q   <= mpq_i;
    end
  end

  // Occurrences of each slot among the possible states of a task, and packets in flight to it.
  logic [2:0]       times [Tasks];
  logic [Tasks-1:0] waits, is_given;
  logic [PlaceWidth:0] entry;
  always_comb begin
    waits    = '0;
    is_given = '0;
    for (int unsigned i = 0; i < Tasks; i++) times[i] = '0;
    for (int unsigned k = 0; k < Tasks; k++) begin
      entry = (PlaceWidth + 1)'(u_csched.u_waiting.head_q) + (PlaceWidth + 1)'(k);
      if (32'(entry) >= Tasks) entry = entry - (PlaceWidth + 1)'(Tasks);
      for (int unsigned i = 0; i < Tasks; i++) begin
        if (k < 32'(u_csched.u_waiting.count_q) && 32'(u_csched.u_waiting.entries_q[PlaceWidth'(entry)]) == i) begin
          times[i] = times[i] + 1'b1;
          waits[i] = 1'b1;
        end
      end
    end
    for (int unsigned i = 0; i < Tasks; i++) begin
      if (|assign_valid && 32'(assign_place) == i) begin
        times[i]    = times[i] + 1'b1;
        is_given[i] = 1'b1;
      end
      for (int unsigned h = 0; h < Hpus; h++) begin
        if (runs_q[h] && 32'(running_q[h]) == i) begin
          times[i]    = times[i] + 1'b1;
          is_given[i] = 1'b1;
        end
        if (ended_q[h] && 32'(ended_in_q[h]) == i) begin
          times[i]    = times[i] + 1'b1;
          is_given[i] = 1'b1;
        end
      end
    end
  end

  // The pieces of the packet buffer.
  logic [Units-1:0] piece [Tasks];
  logic [Units-1:0] pieces, outside;
  logic             is_shared;
  always_comb begin
    pieces    = '0;
    is_shared = 1'b0;
    for (int unsigned i = 0; i < Tasks; i++) begin
      for (int unsigned u = 0; u < Units; u++) begin
        piece[i][u] = !u_csched.free_q[i] && u >= 32'(u_csched.places_q[i].start) && u < 32'(u_csched.stops_q[i]);
      end
      is_shared = is_shared || (pieces & piece[i]) != '0;
      pieces    = pieces | piece[i];
    end
    for (int unsigned u = 0; u < Units; u++) begin
      outside[u] = u_csched.u_ring.tail_q > u_csched.u_ring.head_q
        ? u < 32'(u_csched.u_ring.head_q) || u >= 32'(u_csched.u_ring.tail_q)
        : u >= 32'(u_csched.u_ring.tail_q) && u < 32'(u_csched.u_ring.head_q);
    end
  end

  // Environment: a packet lands in a slot only while in flight to it.
  always_comb begin
    if (live_q) assume (rst_ni);
    assume (rst_ni || !landed_valid_i);
    assume (!landed_valid_i || (32'(landed_place_i) < Tasks && waits[landed_place_i] && !u_csched.landed_q[landed_place_i]));
  end

  always_comb begin
    if (rst_ni) begin
      assert (!(|leaves) || ($onehot(done_ready) && done_valid));
      if (watches_q) begin
        assert (!u_csched.free_q[place_q] && !(sends && send_place == place_q));
        if (is_told) assert (done.mpq == 16'(mpq_q));
      end

      // Each occupied slot occurs exactly once; the others do not occur.
      for (int unsigned i = 0; i < Tasks; i++) assert (times[i] == 3'(!u_csched.free_q[i]));
      assert ((assign_valid & runs_q) == '0);

      // Invariants that make the properties inductive.
      assert (32'(u_csched.u_waiting.head_q) < Tasks && 32'(u_csched.u_waiting.tail_q) < Tasks);
      assert (32'(u_csched.u_waiting.count_q) <= Tasks);
      assert ((32'(u_csched.u_waiting.head_q) + 32'(u_csched.u_waiting.count_q)) % Tasks == 32'(u_csched.u_waiting.tail_q));
      assert (u_csched.given_q == assign_valid && 32'(u_csched.hpu_q) < Hpus || assign_valid == '0 && u_csched.given_q == '0);
      for (int unsigned k = 0; k < Tasks; k++) begin
        if (32'(u_csched.u_waiting.count_q) > k) begin
          assert (32'(u_csched.u_waiting.entries_q[(32'(u_csched.u_waiting.head_q) + k) % Tasks]) < Tasks);
        end
      end
      for (int unsigned h = 0; h < Hpus; h++) begin
        assert (!runs_q[h] || 32'(running_q[h]) < Tasks);
        assert (!ended_q[h] || 32'(ended_in_q[h]) < Tasks);
      end
      assert (32'(tasks) == $countones(~u_csched.free_q));
      assert (u_csched.u_sva.assigned_q == is_given);
      assert ((is_given & ~u_csched.landed_q) == '0);
      if (watches_q) assert (32'(place_q) < Tasks && u_csched.places_q[place_q].work.mpq == 16'(mpq_q));
      assert (!is_shared && pieces == u_csched.u_ring.busy_q);
      for (int unsigned i = 0; i < Tasks; i++) begin
        if (!u_csched.free_q[i]) begin
          assert (32'(u_csched.stops_q[i]) <= Units);
          assert (u_csched.places_q[i].start == u_csched.stops_q[i] || u_csched.places_q[i].start + 1'b1 == u_csched.stops_q[i]);
        end
      end
      assert (32'(u_csched.u_ring.head_q) < Units && 32'(u_csched.u_ring.tail_q) < Units);
      if (u_csched.u_ring.busy_q == '0) assert (u_csched.u_ring.head_q == '0 && u_csched.u_ring.tail_q == '0);
      else assert (u_csched.u_ring.busy_q[u_csched.u_ring.head_q] && (u_csched.u_ring.busy_q & outside) == '0);
    end
  end

endmodule
