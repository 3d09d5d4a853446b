// SPDX-License-Identifier: Apache-2.0
// A processing cluster (PsPIN III-B2): the scheduler, the HPUs, their L1 memory and instruction cache, and the DMA
// engine. Like pspin_cluster_hpu, it has no parameters, so that a simulator compiles one module for all instances.
module pspin_cluster
  import pspin_pkg::*;
  import pspin_cfg_pkg::*;
(
  input  logic                       clk_i,
  input  logic                       rst_ni,
  input  logic [ClusterWidth-1:0]    cluster_i,             // cluster number
  input  cfg_t                       cfg_i,

  // Registers: rows of the table of contexts.
  input  logic                       context_write_i,
  input  logic [ContextWidth-1:0]    context_index_i,
  input  execution_context_t         context_i,
  input  logic                       scratchpad_write_i,
  input  logic [ContextWidth-1:0]    scratchpad_index_i,
  input  logic [ClusterWidth-1:0]    scratchpad_cluster_i,
  input  range_t                     scratchpad_i,

  // Dispatcher: room for a task that copies this many bytes, and number of tasks, both as of the end of the last cycle;
  // and that task, if there is room. Its slot is for observers.
  input  logic [SizeWidth-1:0]       offer_transfer_i,
  output logic                       has_room_o,
  output logic [TasksWidth-1:0]      tasks_o,
  input  logic                       send_valid_i,
  input  task_t                      send_i,
  output logic [PlaceIndexWidth-1:0] send_place_o,

  // Feedback arbiter: finished tasks. The offer may change until it is accepted.
  output logic                       done_valid_o,
  input  logic                       done_ready_i,
  output completion_t                done_o,

  // Command unit: commands for engines (engine_e) with a credit; the offer may change until it is accepted. Responses
  // for all HPUs. Commands of failed tasks, per HPU.
  output logic                       command_valid_o,
  input  logic                       command_ready_i,
  output command_t                   command_o,
  input  logic [2:0]                 credit_i,
  input  logic                       response_valid_i,
  input  response_t                  response_i,
  output logic [HpusPerCluster-1:0][ClusterCommandsInFlight-1:0] orphans_o,

  // DMA interconnect: beats of the cluster's engine, and beats of other clusters' engines in this L1.
  output dma_beat_t [1:0]            beat_o,
  output logic                       beat_turn_o,
  input  logic [1:0]                 beat_grant_i,
  input  logic [511:0]               data_i,
  output logic                       write_valid_o,
  output beat_request_t              write_o,
  input  logic                       other_read_valid_i,
  input  logic [31:0]                other_read_address_i,
  output logic [511:0]               other_read_data_o,
  input  logic                       other_write_valid_i,
  input  beat_request_t              other_write_i,

  // NIC-host interconnect.
  input  logic                       nhi_write_valid_i,
  output logic                       nhi_write_ready_o,
  input  beat_request_t              nhi_write_i,
  input  logic                       nhi_read_valid_i,
  output logic                       nhi_read_ready_o,
  input  logic [31:0]                nhi_read_address_i,
  output logic [511:0]               nhi_read_data_o,

  // PE interconnect: accesses of the HPUs to other memories, and accesses of other clusters to this L1.
  output logic                       pe_valid_o,
  input  logic                       pe_ready_i,
  output word_request_t              pe_o,
  output logic [HpuWidth-1:0]        pe_hpu_o,
  input  logic                       pe_rvalid_i,
  input  logic [HpuWidth-1:0]        pe_rhpu_i,
  input  logic [31:0]                pe_rdata_i,
  input  logic                       remote_valid_i,
  output logic                       remote_ready_o,
  input  word_request_t              remote_i,
  output logic                       remote_rvalid_o,
  output logic [31:0]                remote_rdata_o,

  // Program memory: lines of the instruction cache.
  output logic                       refill_valid_o,
  input  logic                       refill_ready_i,
  output logic [31:0]                refill_address_o,
  input  logic                       refill_rvalid_i,
  input  logic [63:0]                refill_rdata_i,

  // Registers: console characters of HPUs, request to end the run, counter events. waits_o: the cluster has no task,
  // and all HPUs wait for one.
  output logic                       console_valid_o,
  input  logic                       console_ready_i,
  output logic [7:0]                 console_char_o,
  output logic [HpuWidth-1:0]        console_hpu_o,
  output logic                       terminate_o,
  output cluster_events_t            events_o,
  output logic                       waits_o
);

  if (!L1DmaWins || L1AtomicBankCycles != 2 || L1LoadCycles != 1 || L1BankBits != 32) begin : gen_check_l1
    $fatal(1, "the hardware of accelerator.l1 has dma_wins = true, atomic_bank_cycles = 2, load_cycles = 1 and bank_bits = 32");
  end
  if (DmaWidthBits != BeatBytes * 8) begin : gen_check_dma
    $fatal(1, "the hardware of accelerator.dma has width_bits = %0d", BeatBytes * 8);
  end
  if (ClusterDriverCycles != 1) begin : gen_check_driver
    $fatal(1, "the hardware of accelerator.cluster has driver_cycles = 1");
  end
  if (IcachePorts < HpusPerCluster) begin : gen_check_icache
    $fatal(1, "the hardware of accelerator.icache has at least a port for each HPU");
  end

  // ---- Scheduler.
  logic                       packet_valid, landed_valid;
  logic [PlaceIndexWidth-1:0] packet_place, landed_place, assign_place;
  logic [31:0]                packet_from, packet_to;
  logic [SizeWidth-1:0]       packet_size;
  logic [HpusPerCluster-1:0]  assign_valid, idle, waits, done_valid, done_ready;
  task_t                      assign_task;
  range_t                     assign_packet;
  logic [PlaceIndexWidth-1:0] done_place   [HpusPerCluster];
  outcome_t                   done_outcome [HpusPerCluster];
  execution_context_t         row;
  range_t [Clusters-1:0]      scratchpads;

  pspin_csched #(
    .Tasks       (ClusterTasks),
    .Hpus        (HpusPerCluster),
    .BufferBytes (ClusterPacketBufferBytes),
    .SlotBytes   (ClusterSlotBytes),
    .AssignCycles(ClusterAssignCycles)
  ) u_csched (
    .clk_i,
    .rst_ni,
    .cluster_i,
    .buffer_i       (L1Start + (32'(cluster_i) << L1SpanWidth) + ClusterRuntimeBytes),
    .offer_transfer_i,
    .has_room_o,
    .tasks_o,
    .send_valid_i,
    .send_i,
    .send_place_o,
    .dma_valid_o    (packet_valid),
    .dma_place_o    (packet_place),
    .dma_from_o     (packet_from),
    .dma_to_o       (packet_to),
    .dma_size_o     (packet_size),
    .landed_valid_i (landed_valid),
    .landed_place_i (landed_place),
    .assign_valid_o (assign_valid),
    .assign_place_o (assign_place),
    .assign_task_o  (assign_task),
    .assign_packet_o(assign_packet),
    .idle_i         (idle),
    .done_valid_i   (done_valid),
    .done_ready_o   (done_ready),
    .done_place_i   (done_place),
    .done_outcome_i (done_outcome),
    .done_valid_o,
    .done_ready_i,
    .done_o
  );

  pspin_contexts #(
    .Contexts(LimitsContexts),
    .Clusters(Clusters)
  ) u_contexts (
    .clk_i,
    .rst_ni,
    .context_write_i,
    .context_index_i,
    .context_i,
    .scratchpad_write_i,
    .scratchpad_index_i,
    .scratchpad_cluster_i,
    .scratchpad_i,
    .read_i       (|assign_valid),
    .index_i      (assign_task.her.execution_context),
    .context_o    (row),
    .scratchpads_o(scratchpads)
  );

  assign waits_o = &waits && tasks_o == '0;

  // ---- HPUs.
  logic [HpusPerCluster-1:0] instr_req, instr_gnt, instr_rvalid, instr_error;
  logic [31:0]               instr_address [HpusPerCluster];
  logic [31:0]               instr_rdata   [HpusPerCluster];
  logic [HpusPerCluster-1:0] l1_valid, l1_gnt, l1_rvalid;
  word_request_t             l1            [HpusPerCluster];
  logic [31:0]               l1_rdata      [HpusPerCluster];
  logic [HpusPerCluster-1:0] pe_valid, pe_ready;
  word_request_t             pe            [HpusPerCluster];
  logic [HpusPerCluster-1:0] command_valid, command_ready, has_credit;
  command_t                  command       [HpusPerCluster];
  logic [HpusPerCluster-1:0] transfer_valid, transfer_ready, transfer_landed;
  logic [31:0]               transfer_from [HpusPerCluster];
  logic [31:0]               transfer_to   [HpusPerCluster];
  logic [31:0]               transfer_size [HpusPerCluster];
  logic [HpusPerCluster-1:0] console_valid, console_ready, terminate;
  logic [7:0]                console_char  [HpusPerCluster];

  for (genvar h = 0; h < HpusPerCluster; h++) begin : gen_hpu
    pspin_cluster_hpu u_hpu (
      .clk_i,
      .rst_ni,
      .id_i             ('{cluster: cluster_i, hpu: HpuWidth'(h)}),
      .cfg_i,
      .instr_req_o      (instr_req[h]),
      .instr_gnt_i      (instr_gnt[h]),
      .instr_addr_o     (instr_address[h]),
      .instr_rvalid_i   (instr_rvalid[h]),
      .instr_rdata_i    (instr_rdata[h]),
      .instr_error_i    (instr_error[h]),
      .l1_valid_o       (l1_valid[h]),
      .l1_gnt_i         (l1_gnt[h]),
      .l1_o             (l1[h]),
      .l1_rvalid_i      (l1_rvalid[h]),
      .l1_rdata_i       (l1_rdata[h]),
      .pe_valid_o       (pe_valid[h]),
      .pe_ready_i       (pe_ready[h]),
      .pe_o             (pe[h]),
      .pe_rvalid_i      (pe_rvalid_i && pe_rhpu_i == HpuWidth'(h)),
      .pe_rdata_i,
      .assign_valid_i   (assign_valid[h]),
      .assign_place_i   (assign_place),
      .assign_task_i    (assign_task),
      .assign_packet_i  (assign_packet),
      .context_i        (row),
      .scratchpads_i    (scratchpads),
      .idle_o           (idle[h]),
      .waits_o          (waits[h]),
      .done_valid_o     (done_valid[h]),
      .done_ready_i     (done_ready[h]),
      .done_place_o     (done_place[h]),
      .done_outcome_o   (done_outcome[h]),
      .command_valid_o  (command_valid[h]),
      .command_ready_i  (command_ready[h]),
      .command_o        (command[h]),
      .response_valid_i,
      .response_i,
      .orphans_o        (orphans_o[h]),
      .transfer_valid_o (transfer_valid[h]),
      .transfer_ready_i (transfer_ready[h]),
      .transfer_from_o  (transfer_from[h]),
      .transfer_to_o    (transfer_to[h]),
      .transfer_size_o  (transfer_size[h]),
      .transfer_landed_i(transfer_landed[h]),
      .console_valid_o  (console_valid[h]),
      .console_ready_i  (console_ready[h]),
      .console_char_o   (console_char[h]),
      .terminate_o      (terminate[h])
    );

    assign has_credit[h] = credit_i[engine_of(command[h].kind)];
  end

  // ---- Resources shared by the HPUs of the cluster: one HPU at a time.
  logic [HpuIndexWidth-1:0] pe_hpu, console_hpu;

  pspin_rr_mux #(
    .N    (HpusPerCluster),
    .Width($bits(command_t))
  ) u_commands (
    .clk_i,
    .rst_ni,
    .valid_i(command_valid & has_credit),
    .ready_o(command_ready),
    .data_i (command),
    .valid_o(command_valid_o),
    .ready_i(command_ready_i),
    .data_o (command_o),
    .index_o()
  );

  pspin_rr_mux #(
    .N    (HpusPerCluster),
    .Width($bits(word_request_t))
  ) u_pe (
    .clk_i,
    .rst_ni,
    .valid_i(pe_valid),
    .ready_o(pe_ready),
    .data_i (pe),
    .valid_o(pe_valid_o),
    .ready_i(pe_ready_i),
    .data_o (pe_o),
    .index_o(pe_hpu)
  );

  pspin_rr_mux #(
    .N    (HpusPerCluster),
    .Width(8)
  ) u_console (
    .clk_i,
    .rst_ni,
    .valid_i(console_valid),
    .ready_o(console_ready),
    .data_i (console_char),
    .valid_o(console_valid_o),
    .ready_i(console_ready_i),
    .data_o (console_char_o),
    .index_o(console_hpu)
  );

  assign pe_hpu_o      = HpuWidth'(pe_hpu);
  assign console_hpu_o = HpuWidth'(console_hpu);
  assign terminate_o   = |terminate;

  // ---- Memories.
  logic          wide_write_valid, wide_read_valid, misses;
  beat_request_t wide_write;
  logic [31:0]   wide_read_address;
  logic [511:0]  wide_read_data;

  pspin_icache #(
    .Ports       (HpusPerCluster),
    .Bytes       (IcacheBytes),
    .Ways        (IcacheWays),
    .LineBytes   (IcacheLineBytes),
    .ProgramBytes(ProgramBytes)
  ) u_icache (
    .clk_i,
    .rst_ni,
    .flush_i         (!cfg_i.enable),
    .code_i          (cfg_i.code),
    .req_i           (instr_req),
    .gnt_o           (instr_gnt),
    .address_i       (instr_address),
    .rvalid_o        (instr_rvalid),
    .rdata_o         (instr_rdata),
    .error_o         (instr_error),
    .refill_valid_o,
    .refill_ready_i,
    .refill_address_o,
    .refill_rvalid_i,
    .refill_rdata_i,
    .miss_valid_o    (misses),
    .miss_hpu_o      (),
    .miss_address_o  ()
  );

  pspin_l1 #(
    .Hpus (HpusPerCluster),
    .Banks(L1Banks),
    .Bytes(L1Bytes)
  ) u_l1 (
    .clk_i,
    .rst_ni,
    .hpu_valid_i   (l1_valid),
    .hpu_gnt_o     (l1_gnt),
    .hpu_i         (l1),
    .hpu_rvalid_o  (l1_rvalid),
    .hpu_rdata_o   (l1_rdata),
    .remote_valid_i,
    .remote_ready_o,
    .remote_i,
    .remote_rvalid_o,
    .remote_rdata_o,
    .write_valid_i (wide_write_valid),
    .write_i       (wide_write),
    .read_valid_i  (wide_read_valid),
    .read_address_i(wide_read_address),
    .read_data_o   (wide_read_data)
  );

  pspin_cluster_dma #(
    .Hpus      (HpusPerCluster),
    .Tasks     (ClusterTasks),
    .Queue     (DmaQueue),
    .Latency   (DmaLatencyCycles),
    .LeastBeats(DmaLeastBeats),
    .L1Banks   (L1Banks)
  ) u_dma (
    .clk_i,
    .rst_ni,
    .cluster_i,
    .packet_valid_i     (packet_valid),
    .packet_from_i      (packet_from),
    .packet_to_i        (packet_to),
    .packet_size_i      (packet_size),
    .packet_place_i     (packet_place),
    .landed_valid_o     (landed_valid),
    .landed_place_o     (landed_place),
    .transfer_valid_i   (transfer_valid),
    .transfer_ready_o   (transfer_ready),
    .transfer_from_i    (transfer_from),
    .transfer_to_i      (transfer_to),
    .transfer_size_i    (transfer_size),
    .transfer_landed_o  (transfer_landed),
    .beat_o,
    .beat_turn_o,
    .beat_grant_i,
    .data_i,
    .write_valid_o,
    .write_o,
    .other_read_valid_i,
    .other_read_address_i,
    .other_read_data_o,
    .other_write_valid_i,
    .other_write_i,
    .nhi_write_valid_i,
    .nhi_write_ready_o,
    .nhi_write_i,
    .nhi_read_valid_i,
    .nhi_read_ready_o,
    .nhi_read_address_i,
    .nhi_read_data_o,
    .wide_write_valid_o (wide_write_valid),
    .wide_write_o       (wide_write),
    .wide_read_valid_o  (wide_read_valid),
    .wide_read_address_o(wide_read_address),
    .wide_read_data_i   (wide_read_data)
  );

  // ---- Counter events.
  assign events_o = '{
    busy:      (HpuWidth + 1)'($countones(~idle)),
    conflicts: (HpuWidth + 1)'($countones(l1_valid & ~l1_gnt)),
    misses:    misses
  };

endmodule
