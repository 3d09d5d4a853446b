// SPDX-License-Identifier: Apache-2.0
// PsPIN unit (PsPIN III): scheduler, clusters, memories and interconnects, command unit, registers. Its ports are plain
// streams; pspin_top wraps them in AXI.
module pspin_unit
  import pspin_pkg::*;
  import pspin_abi_pkg::*;
  import pspin_cfg_pkg::*;
(
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // From the inbound engine of the NIC: packets in the packet buffer.
  input  logic                    her_valid_i,
  output logic                    her_ready_o,
  input  her_t                    her_i,

  // To the inbound engine: finished packets.
  output logic                    feedback_valid_o,
  input  logic                    feedback_ready_i,
  output feedback_t               feedback_o,

  // From NIC and host: beats to write to the memories, of the packet buffer and all others. Ready depends on the
  // address. Missing: the beat accepted in this cycle is unmapped.
  input  logic                    write_valid_i,
  output logic                    write_ready_o,
  input  beat_request_t           write_i,
  output logic                    write_missing_o,

  // From NIC and host: beats to read from the memories, and their data, in order. Missing: the address is unmapped, the
  // data is 0.
  input  logic                    read_valid_i,
  output logic                    read_ready_o,
  input  logic [31:0]             read_address_i,
  output logic                    read_valid_o,
  output logic [511:0]            read_data_o,
  output logic                    read_missing_o,

  // To the outbound engine of the NIC: packets of handlers, beat by beat, each with the command that sends it.
  output logic                    send_valid_o,
  input  logic                    send_ready_i,
  output command_t                send_command_o,
  output logic [511:0]            send_data_o,
  output logic [6:0]              send_bytes_o,
  output logic                    send_first_o,
  output logic                    send_last_o,

  // To host memory, writes, beat by beat; the first byte of the first beat goes to the address, and the size is that of
  // all beats. The host responds to each write once it accepts it, in the order of those with the same id: 0 is the
  // off-cluster DMA engine, 1 a host-direct command, 2 the unit's own status of a failure.
  output logic                    host_write_valid_o,
  input  logic                    host_write_ready_i,
  output logic [63:0]             host_write_address_o,
  output logic [31:0]             host_write_size_o,
  output logic [511:0]            host_write_data_o,
  output logic [6:0]              host_write_bytes_o,
  output logic                    host_write_first_o,
  output logic                    host_write_last_o,
  output logic [1:0]              host_write_id_o,
  output logic [ContextWidth-1:0] host_write_context_o,
  output logic                    host_write_own_o,
  input  logic                    host_written_valid_i,
  input  logic [1:0]              host_written_id_i,
  input  logic                    host_written_refused_i,

  // To host memory, reads: id 0 is the off-cluster DMA engine, 1 a host-direct command. The data of each id is in
  // order, and starts with the first byte of the address.
  output logic                    host_read_valid_o,
  input  logic                    host_read_ready_i,
  output logic [63:0]             host_read_address_o,
  output logic [31:0]             host_read_size_o,
  output logic [1:0]              host_read_id_o,
  output logic [ContextWidth-1:0] host_read_context_o,
  input  logic                    host_data_valid_i,
  output logic                    host_data_ready_o,
  input  logic [511:0]            host_data_i,
  input  logic                    host_data_last_i,
  input  logic [1:0]              host_data_id_i,
  input  logic                    host_data_refused_i,

  // To the ports of the host: cycles without an answer after which it has refused a command, 0 for never. From them: a
  // write response, a beat of data that no command waits for.
  output logic [31:0]             host_timeout_o,
  input  logic [1:0]              host_strays_i,

  // From the driver on the host: registers, one access at a time, answered in the next cycle.
  input  logic                    ctrl_valid_i,
  input  logic                    ctrl_we_i,
  input  logic [15:0]             ctrl_address_i,
  input  logic [31:0]             ctrl_wdata_i,
  output logic                    ctrl_rvalid_o,
  output logic [31:0]             ctrl_rdata_o,
  output logic                    irq_o,

  // All HPUs wait for a task, and nothing was in flight for some cycles: the clock may stop until the next input.
  output logic                    idle_o
);

  if (DmaWidthBits != 8 * BeatBytes || NhiWidthBits != 8 * BeatBytes) begin : g_check_beat
    $fatal(1, "the wide interconnects have %0d bits in this hardware", 8 * BeatBytes);
  end
  if (PeWidthBits != 32 || L1BankBits != 32 || ProgramPortBits != 64) begin : g_check_narrow
    $fatal(1, "this hardware has 32 bits to a bank of L1 and to other memories, and 64 to the program memory");
  end
  if (MpqLru != MpqLruTree) begin : g_check_lru
    $fatal(1, "the queue engine finds idle messages by a tree");
  end

  localparam int unsigned PacketGroups  = L2PacketBanks * L2PacketBankBits / (8 * BeatBytes);
  localparam int unsigned HandlerGroups = L2HandlerBanks * L2HandlerBankBits / (8 * BeatBytes);
  localparam int unsigned L1Groups      = L1Banks * L1BankBits / (8 * BeatBytes);
  localparam int unsigned Step          = $clog2((Hpus > 2 ? Hpus : 2) + 1);  // width of a counter's increment

  ///////////////
  // Registers //
  ///////////////

  cfg_t                                settings, cfg;
  logic                                context_write, scratchpad_write, reset_valid, reset_done, reset_free;
  logic [ContextWidth-1:0]             context_index, scratchpad_index;
  logic [ClusterWidth-1:0]             scratchpad_cluster;
  execution_context_t                  execution_context;
  range_t                              scratchpad;
  logic [31:0]                         reset_message;
  logic [2:0]                          event_valid, event_ready;
  driver_event_t [2:0]                 events;
  logic [Clusters-1:0]                 terminate, console_valid, console_ready;
  logic [Clusters-1:0][7:0]            console_char;
  logic [Clusters-1:0][HpuWidth-1:0]   console_hpu;
  logic [CounterRows-1:0][Step-1:0]    counts;

  pspin_regs #(
    .Clusters      (Clusters),
    .Hpus          (HpusPerCluster),
    .Queues        (MpqQueues),
    .Contexts      (LimitsContexts),
    .L1Bytes       (L1Bytes),
    .L1Scratchpad  (L1Scratchpad),
    .HandlerBytes  (L2HandlerBytes),
    .PacketBytes   (L2PacketBytes),
    .ProgramBytes  (ProgramBytes),
    .MaxPacketBytes(LimitsMaxPacketBytes),
    .Step          (Step)
  ) u_regs (
    .clk_i,
    .rst_ni,
    .ctrl_valid_i,
    .ctrl_we_i,
    .ctrl_address_i,
    .ctrl_wdata_i,
    .ctrl_rvalid_o,
    .ctrl_rdata_o,
    .irq_o,
    .host_timeout_o,
    .cfg_o               (settings),
    .context_write_o     (context_write),
    .context_index_o     (context_index),
    .context_o           (execution_context),
    .scratchpad_write_o  (scratchpad_write),
    .scratchpad_index_o  (scratchpad_index),
    .scratchpad_cluster_o(scratchpad_cluster),
    .scratchpad_o        (scratchpad),
    .reset_valid_o       (reset_valid),
    .reset_message_o     (reset_message),
    .reset_done_i        (reset_done),
    .reset_free_i        (reset_free),
    .event_valid_i       (event_valid),
    .event_ready_o       (event_ready),
    .event_i             (events),
    .terminate_i         (terminate),
    .console_valid_i     (console_valid),
    .console_ready_o     (console_ready),
    .console_char_i      (console_char),
    .console_hpu_i       (console_hpu),
    .idle_i              (idle_o),
    .counts_i            (counts)
  );

  // A driver that clears ENABLE gives up all messages before the HPUs may run again: first in the queue engine, then
  // their tasks in the clusters end without a core. Program and contexts may change afterwards.
  localparam int unsigned OffCycles = 32;  // at least, for lines on their way to the instruction caches

  logic                         was_enabled_q, gives_up_q;
  logic [$clog2(OffCycles)-1:0] off_q;

  always_comb begin
    cfg        = settings;
    cfg.enable = settings.enable && !gives_up_q;
    cfg.drop   = given_up;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      was_enabled_q <= 1'b0;
      gives_up_q    <= 1'b0;
      off_q         <= '0;
    end else begin
      was_enabled_q <= settings.enable;
      if (was_enabled_q && !settings.enable) begin
        gives_up_q <= 1'b1;
        off_q      <= '1;
      end else if (off_q != '0) begin
        off_q <= off_q - 1'b1;
      end else if (sched_clean) begin
        gives_up_q <= 1'b0;
      end
    end
  end

  ///////////////
  // Scheduler //
  ///////////////

  localparam int unsigned IdWidth     = index_width(InboundMessageIds);
  localparam int unsigned InsideWidth = $clog2(MpqCells + Clusters * ClusterTasks + 4 + ClusterFeedbackCycles + 2);

  logic [SizeWidth-1:0]                offer_transfer;
  logic [Clusters-1:0]                 has_room, send_valid, done_valid, done_ready;
  logic [Clusters-1:0][TasksWidth-1:0] tasks;
  task_t                               send;
  completion_t [Clusters-1:0]          done;
  logic                                failed_valid, failed_ready, lost_valid, lost_ready, sched_empty, sched_clean;
  logic                                given_up;
  completion_t                         failed;
  idle_t                               lost;
  sched_events_t                       sched_events;
  logic [MpqQueues-1:0]                unused_free;
  logic [InsideWidth-1:0]              unused_inside;

  pspin_sched #(
    .Clusters      (Clusters),
    .Tasks         (ClusterTasks),
    .Queues        (MpqQueues),
    .SharedCells   (MpqSharedCells),
    .OwnCells      (MpqCellsPerQueue),
    .IdWidth       (IdWidth),
    .Messages      (InboundMessageIds),
    .Contexts      (LimitsContexts),
    .BufferBytes   (ClusterPacketBufferBytes),
    .SelectCycles  (MpqSelectCycles),
    .DispatchCycles(DispatchCycles),
    .FeedbackCycles(ClusterFeedbackCycles),
    .UsesHome      (DispatchPolicy != DispatchPolicyLeastLoaded),
    .UsesOthers    (DispatchPolicy != DispatchPolicyPinned),
    .UsesPins      (DispatchPolicy == DispatchPolicyPinned)
  ) u_sched (
    .clk_i,
    .rst_ni,
    .context_write_i (context_write),
    .context_index_i (context_index),
    .context_i       (execution_context),
    .her_valid_i,
    .her_ready_o,
    .her_i,
    .feedback_valid_o,
    .feedback_ready_i,
    .feedback_o,
    .offer_transfer_o(offer_transfer),
    .has_room_i      (has_room),
    .tasks_i         (tasks),
    .send_valid_o    (send_valid),
    .send_o          (send),
    .done_valid_i    (done_valid),
    .done_ready_o    (done_ready),
    .done_i          (done),
    .give_up_i       (gives_up_q),
    .given_up_o      (given_up),
    .clean_o         (sched_clean),
    .failed_valid_o  (failed_valid),
    .failed_ready_i  (failed_ready),
    .failed_o        (failed),
    .idle_valid_o    (lost_valid),
    .idle_ready_i    (lost_ready),
    .idle_o          (lost),
    .reset_valid_i   (reset_valid),
    .reset_message_i (reset_message),
    .reset_done_o    (reset_done),
    .reset_free_o    (reset_free),
    .free_o          (unused_free),
    .inside_o        (unused_inside),
    .empty_o         (sched_empty),
    .events_o        (sched_events)
  );

  //////////////
  // Clusters //
  //////////////

  logic [Clusters-1:0]                 command_valid, command_ready;
  command_t [Clusters-1:0]             commands;
  logic [2:0]                          credit;
  logic                                response_valid;
  response_t                           response;
  logic [Clusters-1:0][HpusPerCluster-1:0][ClusterCommandsInFlight-1:0] orphans;

  dma_beat_t [1:0]                     beats [Clusters];
  logic [Clusters-1:0]                 beat_turns, dma_write_valid, other_read_valid, other_write_valid;
  logic [1:0]                          beat_grants [Clusters];
  logic [511:0]                        dma_data [Clusters];
  beat_request_t                       dma_writes [Clusters];
  logic [31:0]                         other_read_addresses [Clusters];
  logic [511:0]                        other_read_data [Clusters];
  beat_request_t                       other_writes [Clusters];

  logic [Clusters-1:0]                 l1_write_valid, l1_write_ready, l1_read_valid, l1_read_ready;
  logic [31:0]                         l1_read_address [Clusters];
  logic [511:0]                        l1_read_data [Clusters];
  beat_request_t                       l1_write;

  logic [Clusters-1:0]                 pe_valid, pe_ready, pe_rvalid, remote_valid, remote_ready, remote_rvalid;
  word_request_t                       pe [Clusters];
  logic [HpuWidth-1:0]                 pe_hpu [Clusters];
  logic [HpuWidth-1:0]                 pe_rhpu [Clusters];
  logic [31:0]                         pe_rdata [Clusters];
  word_request_t                       remote [Clusters];
  logic [31:0]                         remote_rdata [Clusters];

  logic [Clusters-1:0]                 refill_valid, refill_ready, refill_rvalid, waits;
  logic [31:0]                         refill_addresses [Clusters];
  logic [63:0]                         refill_rdata;
  cluster_events_t [Clusters-1:0]      cluster_events;

  for (genvar i = 0; i < Clusters; i++) begin : g_clusters
    logic [PlaceIndexWidth-1:0] unused_place;

    pspin_cluster u_cluster (
      .clk_i,
      .rst_ni,
      .cluster_i           (ClusterWidth'(i)),
      .cfg_i               (cfg),
      .context_write_i     (context_write),
      .context_index_i     (context_index),
      .context_i           (execution_context),
      .scratchpad_write_i  (scratchpad_write),
      .scratchpad_index_i  (scratchpad_index),
      .scratchpad_cluster_i(scratchpad_cluster),
      .scratchpad_i        (scratchpad),
      .offer_transfer_i    (offer_transfer),
      .has_room_o          (has_room[i]),
      .tasks_o             (tasks[i]),
      .send_valid_i        (send_valid[i]),
      .send_i              (send),
      .send_place_o        (unused_place),
      .done_valid_o        (done_valid[i]),
      .done_ready_i        (done_ready[i]),
      .done_o              (done[i]),
      .command_valid_o     (command_valid[i]),
      .command_ready_i     (command_ready[i]),
      .command_o           (commands[i]),
      .credit_i            (credit),
      .response_valid_i    (response_valid),
      .response_i          (response),
      .orphans_o           (orphans[i]),
      .beat_o              (beats[i]),
      .beat_turn_o         (beat_turns[i]),
      .beat_grant_i        (beat_grants[i]),
      .data_i              (dma_data[i]),
      .write_valid_o       (dma_write_valid[i]),
      .write_o             (dma_writes[i]),
      .other_read_valid_i  (other_read_valid[i]),
      .other_read_address_i(other_read_addresses[i]),
      .other_read_data_o   (other_read_data[i]),
      .other_write_valid_i (other_write_valid[i]),
      .other_write_i       (other_writes[i]),
      .nhi_write_valid_i   (l1_write_valid[i]),
      .nhi_write_ready_o   (l1_write_ready[i]),
      .nhi_write_i         (l1_write),
      .nhi_read_valid_i    (l1_read_valid[i]),
      .nhi_read_ready_o    (l1_read_ready[i]),
      .nhi_read_address_i  (l1_read_address[i]),
      .nhi_read_data_o     (l1_read_data[i]),
      .pe_valid_o          (pe_valid[i]),
      .pe_ready_i          (pe_ready[i]),
      .pe_o                (pe[i]),
      .pe_hpu_o            (pe_hpu[i]),
      .pe_rvalid_i         (pe_rvalid[i]),
      .pe_rhpu_i           (pe_rhpu[i]),
      .pe_rdata_i          (pe_rdata[i]),
      .remote_valid_i      (remote_valid[i]),
      .remote_ready_o      (remote_ready[i]),
      .remote_i            (remote[i]),
      .remote_rvalid_o     (remote_rvalid[i]),
      .remote_rdata_o      (remote_rdata[i]),
      .refill_valid_o      (refill_valid[i]),
      .refill_ready_i      (refill_ready[i]),
      .refill_address_o    (refill_addresses[i]),
      .refill_rvalid_i     (refill_rvalid[i]),
      .refill_rdata_i      (refill_rdata),
      .console_valid_o     (console_valid[i]),
      .console_ready_i     (console_ready[i]),
      .console_char_o      (console_char[i]),
      .console_hpu_o       (console_hpu[i]),
      .terminate_o         (terminate[i]),
      .events_o            (cluster_events[i]),
      .waits_o             (waits[i])
    );
  end

  //////////////
  // Memories //
  //////////////

  // [0] handler memory, [1] packet buffer, [2] program memory.
  logic [2:0]               nhi_write_valid, nhi_write_ready, nhi_read_valid, nhi_read_ready;
  beat_request_t            nhi_writes [3];
  logic [31:0]              nhi_read_address [3];
  logic [511:0]             nhi_read_data [3];
  logic [2:0]               memory_valid, memory_ready, memory_rvalid;
  word_request_t            memory_words [3];
  logic [31:0]              memory_rdata [3];

  logic [PacketGroups-1:0]  packet_busy;
  logic [HandlerGroups-1:0] handler_busy;
  logic                     packet_read_valid, packet_write_valid, handler_read_valid, handler_write_valid;
  logic [31:0]              packet_read_address, handler_read_address;
  logic [511:0]             packet_read_data, handler_read_data;
  beat_request_t            packet_write, handler_write;

  pspin_l2 #(
    .Start    (HandlerStart),
    .Bytes    (L2HandlerBytes),
    .Banks    (L2HandlerBanks),
    .BankBytes(L2HandlerBankBits / 8),
    .Ports    (L2HandlerPorts)
  ) u_l2_handler (
    .clk_i,
    .rst_ni,
    .a_write_valid_i (nhi_write_valid[0]),
    .a_write_ready_o (nhi_write_ready[0]),
    .a_write_i       (nhi_writes[0]),
    .a_read_valid_i  (nhi_read_valid[0]),
    .a_read_ready_o  (nhi_read_ready[0]),
    .a_read_address_i(nhi_read_address[0]),
    .a_read_data_o   (nhi_read_data[0]),
    .busy_o          (handler_busy),
    .b_read_valid_i  (handler_read_valid),
    .b_read_address_i(handler_read_address),
    .b_read_data_o   (handler_read_data),
    .b_write_valid_i (handler_write_valid),
    .b_write_i       (handler_write),
    .pe_valid_i      (memory_valid[0]),
    .pe_ready_o      (memory_ready[0]),
    .pe_i            (memory_words[0]),
    .pe_rvalid_o     (memory_rvalid[0]),
    .pe_rdata_o      (memory_rdata[0])
  );

  pspin_l2 #(
    .Start    (PacketStart),
    .Bytes    (L2PacketBytes),
    .Banks    (L2PacketBanks),
    .BankBytes(L2PacketBankBits / 8),
    .Ports    (L2PacketPorts)
  ) u_l2_packet (
    .clk_i,
    .rst_ni,
    .a_write_valid_i (nhi_write_valid[1]),
    .a_write_ready_o (nhi_write_ready[1]),
    .a_write_i       (nhi_writes[1]),
    .a_read_valid_i  (nhi_read_valid[1]),
    .a_read_ready_o  (nhi_read_ready[1]),
    .a_read_address_i(nhi_read_address[1]),
    .a_read_data_o   (nhi_read_data[1]),
    .busy_o          (packet_busy),
    .b_read_valid_i  (packet_read_valid),
    .b_read_address_i(packet_read_address),
    .b_read_data_o   (packet_read_data),
    .b_write_valid_i (packet_write_valid),
    .b_write_i       (packet_write),
    .pe_valid_i      (memory_valid[1]),
    .pe_ready_o      (memory_ready[1]),
    .pe_i            (memory_words[1]),
    .pe_rvalid_o     (memory_rvalid[1]),
    .pe_rdata_o      (memory_rdata[1])
  );

  pspin_program_memory #(
    .Clusters  (Clusters),
    .Bytes     (ProgramBytes),
    .PortBytes (ProgramPortBits / 8),
    .LineBytes (IcacheLineBytes),
    .MissCycles(IcacheMissCycles - 1)  // the cache sends its request in the cycle after the fetch
  ) u_program_memory (
    .clk_i,
    .rst_ni,
    .refill_valid_i  (refill_valid),
    .refill_ready_o  (refill_ready),
    .refill_address_i(refill_addresses),
    .refill_rvalid_o (refill_rvalid),
    .refill_rdata_o  (refill_rdata),
    .pe_valid_i      (memory_valid[2]),
    .pe_ready_o      (memory_ready[2]),
    .pe_address_i    (memory_words[2].address),
    .pe_rvalid_o     (memory_rvalid[2]),
    .pe_rdata_o      (memory_rdata[2]),
    .write_valid_i   (nhi_write_valid[2]),
    .write_ready_o   (nhi_write_ready[2]),
    .write_i         (nhi_writes[2]),
    .read_valid_i    (nhi_read_valid[2]),
    .read_ready_o    (nhi_read_ready[2]),
    .read_address_i  (nhi_read_address[2]),
    .read_data_o     (nhi_read_data[2])
  );

  ///////////////////
  // Interconnects //
  ///////////////////

  logic [2:0]    read_valid, read_ready, read_rvalid;
  logic [511:0]  read_data [3];
  logic [31:0]   read_addresses [3];
  logic [1:0][31:0] engine_addresses;
  logic          host_valid, host_ready;
  beat_request_t host_write;

  pspin_dma_xbar #(
    .Clusters     (Clusters),
    .PacketGroups (PacketGroups),
    .HandlerGroups(HandlerGroups),
    .L1Groups     (L1Groups)
  ) u_dma_xbar (
    .clk_i,
    .rst_ni,
    .beat_i                (beats),
    .beat_turn_i           (beat_turns),
    .beat_grant_o          (beat_grants),
    .data_o                (dma_data),
    .write_valid_i         (dma_write_valid),
    .write_i               (dma_writes),
    .other_read_valid_o    (other_read_valid),
    .other_read_address_o  (other_read_addresses),
    .other_read_data_i     (other_read_data),
    .other_write_valid_o   (other_write_valid),
    .other_write_o         (other_writes),
    .packet_busy_i         (packet_busy),
    .packet_read_valid_o   (packet_read_valid),
    .packet_read_address_o (packet_read_address),
    .packet_read_data_i    (packet_read_data),
    .packet_write_valid_o  (packet_write_valid),
    .packet_write_o        (packet_write),
    .handler_busy_i        (handler_busy),
    .handler_read_valid_o  (handler_read_valid),
    .handler_read_address_o(handler_read_address),
    .handler_read_data_i   (handler_read_data),
    .handler_write_valid_o (handler_write_valid),
    .handler_write_o       (handler_write)
  );

  pspin_pe_xbar #(
    .Clusters      (Clusters),
    .InFlight      (PeInFlight),
    .RemoteL1Cycles(PeRemoteL1Cycles),
    .L2Cycles      (PeL2Cycles)
  ) u_pe_xbar (
    .clk_i,
    .rst_ni,
    .pe_valid_i     (pe_valid),
    .pe_ready_o     (pe_ready),
    .pe_i           (pe),
    .pe_hpu_i       (pe_hpu),
    .pe_rvalid_o    (pe_rvalid),
    .pe_rhpu_o      (pe_rhpu),
    .pe_rdata_o     (pe_rdata),
    .remote_valid_o (remote_valid),
    .remote_ready_i (remote_ready),
    .remote_o       (remote),
    .remote_rvalid_i(remote_rvalid),
    .remote_rdata_i (remote_rdata),
    .memory_valid_o (memory_valid),
    .memory_ready_i (memory_ready),
    .memory_o       (memory_words),
    .memory_rvalid_i(memory_rvalid),
    .memory_rdata_i (memory_rdata)
  );

  pspin_nhi #(
    .Clusters    (Clusters),
    .L1Bytes     (L1Bytes),
    .HandlerBytes(L2HandlerBytes),
    .PacketBytes (L2PacketBytes),
    .ProgramBytes(ProgramBytes)
  ) u_nhi (
    .clk_i,
    .rst_ni,
    .write_valid_i,
    .write_ready_o,
    .write_i,
    .write_missing_o,
    .host_valid_i         (host_valid),
    .host_ready_o         (host_ready),
    .host_i               (host_write),
    .read_valid_i         (read_valid),
    .read_ready_o         (read_ready),
    .read_address_i       (read_addresses),
    .read_rvalid_o        (read_rvalid),
    .read_data_o          (read_data),
    .read_missing_o,
    .l1_write_valid_o     (l1_write_valid),
    .l1_write_ready_i     (l1_write_ready),
    .l1_write_o           (l1_write),
    .l1_read_valid_o      (l1_read_valid),
    .l1_read_ready_i      (l1_read_ready),
    .l1_read_address_o    (l1_read_address),
    .l1_read_data_i       (l1_read_data),
    .memory_write_valid_o (nhi_write_valid),
    .memory_write_ready_i (nhi_write_ready),
    .memory_write_o       (nhi_writes),
    .memory_read_valid_o  (nhi_read_valid),
    .memory_read_ready_i  (nhi_read_ready),
    .memory_read_address_o(nhi_read_address),
    .memory_read_data_i   (nhi_read_data)
  );

  assign read_valid[2]     = read_valid_i;
  assign read_ready_o      = read_ready[2];
  assign read_addresses[0] = engine_addresses[0];
  assign read_addresses[1] = engine_addresses[1];
  assign read_addresses[2] = read_address_i;
  assign read_valid_o      = read_rvalid[2];
  assign read_data_o       = read_data[2];

  //////////////
  // Commands //
  //////////////

  logic command_taken, status_lost, commands_empty;

  pspin_command_unit #(
    .Clusters      (Clusters),
    .Hpus          (HpusPerCluster),
    .Slots         (ClusterCommandsInFlight),
    .OutboundQueue (OutboundQueue),
    .HostQueue     (CommandsInFlightPerTarget),
    .PathCycles    (CommandsPathCycles),
    .ReadCycles    (CommandsReadCycles),
    .ResponseCycles(CommandsResponseCycles),
    .L1Gap         (OutboundL1GapCycles),
    .L2Gap         (OutboundL2GapCycles),
    .CopyStart     (OffClusterStartCycles),
    .CopyL1Gap     (OffClusterL1GapCycles),
    .CopyL2Gap     (OffClusterL2GapCycles),
    .WriteCredit   (OffClusterWriteCreditCycles),
    .ReadCredit    (OffClusterReadCreditCycles),
    .Contexts      (LimitsContexts)
  ) u_command_unit (
    .clk_i,
    .rst_ni,
    .context_write_i     (context_write),
    .context_index_i     (context_index),
    .context_descriptor_i(execution_context.descriptor),
    .credit_o            (credit),
    .command_valid_i     (command_valid),
    .command_ready_o     (command_ready),
    .command_i           (commands),
    .response_valid_o    (response_valid),
    .response_o          (response),
    .orphans_i           (orphans),
    .failed_valid_i      (failed_valid),
    .failed_ready_o      (failed_ready),
    .failed_i            (failed),
    .idle_valid_i        (lost_valid),
    .idle_ready_o        (lost_ready),
    .idle_i              (lost),
    .read_valid_o        (read_valid[1:0]),
    .read_ready_i        (read_ready[1:0]),
    .read_address_o      (engine_addresses),
    .read_rvalid_i       (read_rvalid[1:0]),
    .read_data_i         (read_data[0:1]),
    .write_valid_o       (host_valid),
    .write_ready_i       (host_ready),
    .write_o             (host_write),
    .send_valid_o,
    .send_ready_i,
    .send_command_o,
    .send_data_o,
    .send_bytes_o,
    .send_first_o,
    .send_last_o,
    .host_write_valid_o,
    .host_write_ready_i,
    .host_write_address_o,
    .host_write_size_o,
    .host_write_data_o,
    .host_write_bytes_o,
    .host_write_first_o,
    .host_write_last_o,
    .host_write_id_o,
    .host_write_context_o,
    .host_write_own_o,
    .host_written_valid_i,
    .host_written_id_i,
    .host_written_refused_i,
    .host_read_valid_o,
    .host_read_ready_i,
    .host_read_address_o,
    .host_read_size_o,
    .host_read_id_o,
    .host_read_context_o,
    .host_data_valid_i,
    .host_data_ready_o,
    .host_data_i,
    .host_data_last_i,
    .host_data_id_i,
    .host_data_refused_i,
    .event_valid_o       (event_valid),
    .event_ready_i       (event_ready),
    .event_o             (events),
    .taken_o             (command_taken),
    .status_lost_o       (status_lost),
    .empty_o             (commands_empty)
  );

  //////////////
  // Counters //
  //////////////

  logic feeds_back;
  assign feeds_back = feedback_valid_o && feedback_ready_i;

  always_comb begin
    counts                     = '0;
    counts[CounterAccepted]    = Step'(sched_events.accepted);
    counts[CounterDone]        = Step'(feeds_back && feedback_o.kind == EndDone);
    counts[CounterSkipped]     = Step'(feeds_back && feedback_o.kind == EndSkipped);
    counts[CounterFaulted]     = Step'(feeds_back && feedback_o.kind == EndFaulted);
    counts[CounterTimedOut]    = Step'(feeds_back && feedback_o.kind == EndTimedOut);
    counts[CounterReset]       = Step'(feeds_back && feedback_o.kind == EndMessageReset);
    counts[CounterCommands]    = Step'(command_taken);
    counts[CounterLostStatus]  = Step'(status_lost);
    counts[CounterRefused]     = Step'(sched_events.refused);
    counts[CounterBlocked]     = Step'(sched_events.blocked);
    counts[CounterHeld]        = Step'(sched_events.held);
    counts[CounterStray]       = Step'(host_strays_i[0]) + Step'(host_strays_i[1]);
    for (int unsigned i = 0; i < Clusters; i++) begin
      counts[CounterBusy]      = counts[CounterBusy] + Step'(cluster_events[i].busy);
      counts[CounterConflicts] = counts[CounterConflicts] + Step'(cluster_events[i].conflicts);
      counts[CounterMisses]    = counts[CounterMisses] + Step'(cluster_events[i].misses);
    end
  end

  //////////
  // Idle //
  //////////

  // Upper bound of the time in which outputs of an interconnect reach their memory.
  localparam int unsigned QuietCycles = 32;

  logic [$clog2(QuietCycles+1)-1:0] quiet_q;
  logic                             is_quiet;

  assign is_quiet = &waits && sched_empty && !gives_up_q && commands_empty && !write_valid_i && !read_valid_i && !ctrl_valid_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) quiet_q <= '0;
    else if (!is_quiet) quiet_q <= '0;
    else if (!idle_o) quiet_q <= quiet_q + 1'b1;
  end

  assign idle_o = quiet_q == ($clog2(QuietCycles + 1))'(QuietCycles);

  // Words of the program memory are only read; some events are for observers.
  logic unused;
  assign unused = ^{memory_words[2], sched_events};

endmodule
