// SPDX-License-Identifier: Apache-2.0
// Scheduler of a cluster (CSCHED, PsPIN III-B2). It allocates a slot and packet buffer space to each task, has the
// packet copied, and assigns tasks to idle HPUs in order of arrival once their packets land. When an HPU finishes, its
// task leaves the cluster, and slot and space are free.
//
// The table of slots consists of flip-flops: a leaving task is read in the cycle of the choice of its HPU.
module pspin_csched
  import pspin_pkg::*;
#(
  parameter int unsigned Tasks        = 20,      // capacity of the cluster
  parameter int unsigned Hpus         = 8,
  parameter int unsigned BufferBytes  = 32_768,  // size of the packet buffer
  parameter int unsigned SlotBytes    = 64,      // allocation unit of the packet buffer: a power of two
  parameter int unsigned AssignCycles = 1,
  localparam int unsigned PlaceWidth = Tasks > 1 ? $clog2(Tasks) : 1,
  localparam int unsigned TasksWidth = $clog2(Tasks + 1)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic [ClusterWidth-1:0] cluster_i,
  input  logic [31:0]             buffer_i,          // address of the packet buffer

  // From the dispatcher: room for a task that copies this many bytes, as of the end of the last cycle; and that task,
  // if there is room.
  input  logic [SizeWidth-1:0]    offer_transfer_i,
  output logic                    has_room_o,
  output logic [TasksWidth-1:0]   tasks_o,
  input  logic                    send_valid_i,
  input  task_t                   send_i,
  output logic [PlaceWidth-1:0]   send_place_o,      // slot of the offered task

  // To the cluster's DMA engine, which is always ready: a packet to copy. From it: the packet of a slot is usable.
  output logic                    dma_valid_o,
  output logic [PlaceWidth-1:0]   dma_place_o,
  output logic [31:0]             dma_from_o,
  output logic [31:0]             dma_to_o,
  output logic [SizeWidth-1:0]    dma_size_o,
  input  logic                    landed_valid_i,
  input  logic [PlaceWidth-1:0]   landed_place_i,

  // To the drivers of the HPUs: a task, for one of them. From them: idle HPUs.
  output logic [Hpus-1:0]         assign_valid_o,
  output logic [PlaceWidth-1:0]   assign_place_o,
  output task_t                   assign_task_o,
  output range_t                  assign_packet_o,   // address and size in L1
  input  logic [Hpus-1:0]         idle_i,

  // From the drivers: finished tasks, in order per HPU.
  input  logic [Hpus-1:0]         done_valid_i,
  output logic [Hpus-1:0]         done_ready_o,
  input  logic [PlaceWidth-1:0]   done_place_i   [Hpus],
  input  outcome_t                done_outcome_i [Hpus],

  // To the feedback arbiter of the unit: the next finished task. Another HPU may take precedence until it is accepted.
  output logic                    done_valid_o,
  input  logic                    done_ready_i,
  output completion_t             done_o
);

  localparam int unsigned IndexWidth = Hpus > 1 ? $clog2(Hpus) : 1;
  localparam int unsigned Units      = BufferBytes / SlotBytes;
  localparam int unsigned UnitsWidth = $clog2(Units + 1);
  localparam int unsigned SlotShift  = $clog2(SlotBytes);

  typedef struct packed {
    task_t                 work;
    logic [UnitsWidth-1:0] start;  // start of its packet, in units of the packet buffer
  } placed_t;

  // Number of units of the packet buffer for this many bytes.
  function automatic logic [SizeWidth:0] units_of(logic [SizeWidth-1:0] bytes);
    return ((SizeWidth + 1)'(bytes) + (SizeWidth + 1)'(SlotBytes - 1)) >> SlotShift;
  endfunction

  logic [Tasks-1:0]      free_q, landed_q, landed_now;
  logic                  has_place, fits;
  logic [SizeWidth:0]    wanted;
  logic [UnitsWidth-1:0] start, placed_at;
  placed_t               places_q [Tasks];
  logic [UnitsWidth-1:0] stops_q  [Tasks];  // unit after the packet of a task; its start if nothing is copied
  logic                  leaves;
  logic [PlaceWidth-1:0] done_place;
  placed_t               leaving;

  // Allocate the free slot with the lowest number, and a piece of the packet buffer unless nothing is copied.
  pspin_first #(
    .N(Tasks)
  ) u_place (
    .bits_i (free_q),
    .valid_o(has_place),
    .index_o(send_place_o)
  );

  pspin_l1_ring #(
    .Units(Units)
  ) u_ring (
    .clk_i,
    .rst_ni,
    .size_i       (UnitsWidth'(wanted)),
    .has_room_o   (fits),
    .start_o      (start),
    .allocate_i   (dma_valid_o),
    .free_i       (leaves),
    .freed_start_i(leaving.start),
    .freed_end_i  (stops_q[done_place]),
    .used_o       ()
  );

  assign wanted      = units_of(offer_transfer_i);
  assign has_room_o  = has_place && (offer_transfer_i == '0 || (wanted <= (SizeWidth + 1)'(Units) && fits));
  assign dma_valid_o = send_valid_i && offer_transfer_i != '0;
  assign dma_place_o = send_place_o;
  assign dma_from_o  = send_i.her.address;
  assign dma_to_o    = buffer_i + (32'(start) << SlotShift);
  assign dma_size_o  = offer_transfer_i;
  assign placed_at   = offer_transfer_i == '0 ? '0 : start;

  always_ff @(posedge clk_i) begin
    if (send_valid_i) begin
      places_q[send_place_o] <= '{work: send_i, start: placed_at};
      stops_q[send_place_o]  <= placed_at + UnitsWidth'(wanted);
    end
  end

  // The first task goes to the idle HPU with the lowest number.
  logic                  waits, may_assign, has_idle;
  logic [PlaceWidth-1:0] first;
  logic [Hpus-1:0]       given_q;  // a task is in flight to the driver, or arrives in this cycle
  logic [IndexWidth-1:0] idle_hpu;

  pspin_fifo #(
    .Width(PlaceWidth),
    .Depth(Tasks)
  ) u_waiting (
    .clk_i,
    .rst_ni,
    .valid_i(send_valid_i),
    .ready_o(),
    .data_i (send_place_o),
    .valid_o(waits),
    .ready_i(may_assign),
    .data_o (first),
    .count_o()
  );

  pspin_first #(
    .N(Hpus)
  ) u_idle (
    .bits_i (idle_i & ~given_q),
    .valid_o(has_idle),
    .index_o(idle_hpu)
  );

  assign landed_now = landed_q | (Tasks'(landed_valid_i) << landed_place_i);
  assign may_assign = waits && landed_now[first] && has_idle;

  logic                  is_assigned, assigned_q;
  logic [IndexWidth-1:0] assigned_hpu, hpu_q;
  logic [PlaceWidth-1:0] assigned_place;
  placed_t               placed_q;

  pspin_delay #(
    .Width (IndexWidth + PlaceWidth),
    .Cycles(AssignCycles - 1)
  ) u_assign (
    .clk_i,
    .rst_ni,
    .valid_i(may_assign),
    .data_i ({idle_hpu, first}),
    .valid_o(is_assigned),
    .data_o ({assigned_hpu, assigned_place}),
    .empty_o()
  );

  assign assign_valid_o  = Hpus'(assigned_q) << hpu_q;
  assign assign_task_o   = placed_q.work;
  assign assign_packet_o = '{
    address: buffer_i + (32'(placed_q.start) << SlotShift),
    size:    32'(placed_q.work.her.transfer)
  };

  always_ff @(posedge clk_i) begin
    if (is_assigned) begin
      hpu_q          <= assigned_hpu;
      assign_place_o <= assigned_place;
      placed_q       <= places_q[assigned_place];
    end
  end

  // Release a task.
  logic [IndexWidth-1:0] done_hpu;

  pspin_rr_arbiter #(
    .N(Hpus)
  ) u_done (
    .clk_i,
    .rst_ni,
    .requests_i(done_valid_i),
    .take_i    (done_ready_i),
    .valid_o   (done_valid_o),
    .index_o   (done_hpu)
  );

  assign leaves       = done_valid_o && done_ready_i;
  assign done_ready_o = Hpus'(done_ready_i) << done_hpu;
  assign done_place   = done_place_i[done_hpu];
  assign leaving      = places_q[done_place];
  assign done_o       = '{
    role:       leaving.work.role,
    mpq:        leaving.work.mpq,
    feeds_back: leaving.work.feeds_back,
    hpu:        '{cluster: cluster_i, hpu: HpuWidth'(done_hpu)},
    outcome:    done_outcome_i[done_hpu],
    her:        leaving.work.her
  };

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      free_q     <= '1;
      landed_q   <= '0;
      given_q    <= '0;
      assigned_q <= 1'b0;
      tasks_o    <= '0;
    end else begin
      assigned_q <= is_assigned;
      given_q    <= (given_q & ~assign_valid_o) | (Hpus'(may_assign) << idle_hpu);
      landed_q   <= landed_now;
      tasks_o    <= tasks_o + TasksWidth'(send_valid_i) - TasksWidth'(leaves);
      if (leaves) free_q[done_place] <= 1'b1;
      if (send_valid_i) begin
        free_q[send_place_o]   <= 1'b0;
        landed_q[send_place_o] <= offer_transfer_i == '0;
      end
    end
  end

endmodule
