// SPDX-License-Identifier: Apache-2.0
// Command unit (PsPIN III-B1): accepts one command of the HPUs per cycle, routes it to its engine, and returns the
// responses. A command accepted in cycle T reaches its engine in T + PathCycles.
module pspin_command_unit
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters       = 4,
  parameter int unsigned Hpus           = 8,    // HPUs of a cluster
  parameter int unsigned Slots          = 4,    // commands in flight of an HPU
  parameter int unsigned OutboundQueue  = 32,
  parameter int unsigned HostQueue      = 8,    // commands in each of the two engines for the host
  parameter int unsigned PathCycles     = 4,
  parameter int unsigned ReadCycles     = 4,
  parameter int unsigned ResponseCycles = 2,
  parameter int unsigned L1Gap          = 1,
  parameter int unsigned L2Gap          = 0,
  parameter int unsigned CopyStart      = 0,    // off-cluster DMA engine: cycles that a copy to the host waits
  parameter int unsigned CopyL1Gap      = 1,    // cycles after one from L1
  parameter int unsigned CopyL2Gap      = 0,    // cycles after one from L2
  parameter int unsigned WriteCredit    = 0,    // cycles until the credit of a copy to the host returns
  parameter int unsigned ReadCredit     = 0,    // and of a copy from it
  parameter int unsigned Contexts       = 64
) (
  input  logic                                            clk_i,
  input  logic                                            rst_ni,

  // From the registers: descriptors of contexts.
  input  logic                                            context_write_i,
  input  logic [ContextWidth-1:0]                         context_index_i,
  input  logic [63:0]                                     context_descriptor_i,

  // From the clusters: a command for an engine with a credit, by engine_e. Responses for all HPUs. Slots of commands
  // whose task failed.
  output logic [2:0]                                      credit_o,
  input  logic [Clusters-1:0]                             command_valid_i,
  output logic [Clusters-1:0]                             command_ready_o,
  input  command_t [Clusters-1:0]                         command_i,
  output logic                                            response_valid_o,
  output response_t                                       response_o,
  input  logic [Clusters-1:0][Hpus-1:0][Slots-1:0]        orphans_i,

  // From pspin_sched.
  input  logic                                            failed_valid_i,
  output logic                                            failed_ready_o,
  input  completion_t                                     failed_i,
  input  logic                                            idle_valid_i,
  output logic                                            idle_ready_o,
  input  idle_t                                           idle_i,

  // To pspin_nhi: reads of the outbound engine [0] and of the off-cluster DMA engine [1], and writes of the latter.
  output logic [1:0]                                      read_valid_o,
  input  logic [1:0]                                      read_ready_i,
  output logic [1:0][31:0]                                read_address_o,
  input  logic [1:0]                                      read_rvalid_i,
  input  logic [511:0]                                    read_data_i [2],
  output logic                                            write_valid_o,
  input  logic                                            write_ready_i,
  output beat_request_t                                   write_o,

  // To the outbound engine of the NIC.
  output logic                                            send_valid_o,
  input  logic                                            send_ready_i,
  output command_t                                        send_command_o,
  output logic [511:0]                                    send_data_o,
  output logic [6:0]                                      send_bytes_o,
  output logic                                            send_first_o,
  output logic                                            send_last_o,

  // To host memory, writes: id 0 is the off-cluster DMA engine, 1 a host-direct command, 2 a status of the unit itself.
  output logic                                            host_write_valid_o,
  input  logic                                            host_write_ready_i,
  output logic [63:0]                                     host_write_address_o,
  output logic [31:0]                                     host_write_size_o,
  output logic [511:0]                                    host_write_data_o,
  output logic [6:0]                                      host_write_bytes_o,
  output logic                                            host_write_first_o,
  output logic                                            host_write_last_o,
  output logic [1:0]                                      host_write_id_o,
  output logic [ContextWidth-1:0]                         host_write_context_o,
  output logic                                            host_write_own_o,
  input  logic                                            host_written_valid_i,
  input  logic [1:0]                                      host_written_id_i,
  input  logic                                            host_written_refused_i,

  // To host memory, reads: id 0 is the off-cluster DMA engine, 1 a host-direct command.
  output logic                                            host_read_valid_o,
  input  logic                                            host_read_ready_i,
  output logic [63:0]                                     host_read_address_o,
  output logic [31:0]                                     host_read_size_o,
  output logic [1:0]                                      host_read_id_o,
  output logic [ContextWidth-1:0]                         host_read_context_o,
  input  logic                                            host_data_valid_i,
  output logic                                            host_data_ready_o,
  input  logic [511:0]                                    host_data_i,
  input  logic                                            host_data_last_i,
  input  logic [1:0]                                      host_data_id_i,
  input  logic                                            host_data_refused_i,

  // To the event queue of the registers: failures, and completions of writes and reads of the off-cluster DMA engine.
  output logic [2:0]                                      event_valid_o,
  input  logic [2:0]                                      event_ready_i,
  output driver_event_t [2:0]                             event_o,

  // To the counters.
  output logic                                            taken_o,
  output logic                                            status_lost_o,

  output logic                                            empty_o   // no command is inside
);

  if (PathCycles < 3) begin : g_check
    $fatal(1, "a command takes three cycles to its engine at least");
  end

  /////////////
  // Arbiter //
  /////////////

  localparam int unsigned SourceWidth = $clog2(Clusters + 1);

  // The status unit follows the clusters in round-robin order.
  logic [Clusters:0]       requests;
  logic [SourceWidth-1:0]  source;
  logic                    status_valid, status_ready;
  logic [63:0]             status_host;
  logic [ContextWidth-1:0] status_context;
  command_t                taken;
  engine_e                 engine;

  always_comb begin
    for (int unsigned i = 0; i < Clusters; i++) requests[i] = command_valid_i[i] && credit_o[engine_of(command_i[i].kind)];
    requests[Clusters] = status_valid && credit_o[EngineDirect];
  end

  pspin_rr_arbiter #(
    .N(Clusters + 1)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .requests_i(requests),
    .take_i    (1'b1),
    .valid_o   (taken_o),
    .index_o   (source)
  );

  assign {status_ready, command_ready_o} = (Clusters + 1)'(taken_o) << source;

  always_comb begin
    taken                   = '0;
    taken.kind              = CommandHostDirect;
    taken.host              = status_host;
    taken.execution_context = status_context;
    for (int unsigned i = 0; i < Clusters; i++) if (source == SourceWidth'(i)) taken = command_i[i];
  end

  assign engine = engine_of(taken.kind);

  /////////////
  // Credits //
  /////////////

  logic [2:0] takes, gives, has_credit, all;
  logic [1:0] copies_end, host_gives, unused_data, unused_empty;
  logic [$clog2(OutboundQueue+1)-1:0] left_outbound;
  logic [$clog2(HostQueue+1)-1:0]     left_dma, left_direct;

  assign takes = 3'(taken_o) << engine;

  // A credit of the host's engines can be taken in the cycle of its return: otherwise eight of them would not suffice
  // for 400 Gbit/s.
  assign credit_o[EngineOutbound]   = has_credit[EngineOutbound];
  assign credit_o[EngineOffCluster] = has_credit[EngineOffCluster] || gives[EngineOffCluster];
  assign credit_o[EngineDirect]     = has_credit[EngineDirect] || gives[EngineDirect];

  pspin_credit #(
    .Credits(OutboundQueue)
  ) u_outbound_credit (
    .clk_i,
    .rst_ni,
    .take_i     (takes[EngineOutbound]),
    .give_i     (gives[EngineOutbound]),
    .available_o(has_credit[EngineOutbound]),
    .all_o      (all[EngineOutbound]),
    .count_o    (left_outbound)
  );

  // Both directions of the off-cluster DMA engine may return a credit in a cycle: one returns, the others wait.
  localparam int unsigned HostWidth = $clog2(HostQueue + 1);
  logic [HostWidth-1:0] owed_q, owed;

  for (genvar i = 0; i < 2; i++) begin : gen_copy_credit
    pspin_delay #(
      .Width (1),
      .Cycles(i == 0 ? WriteCredit : ReadCredit)
    ) u_way (
      .clk_i,
      .rst_ni,
      .valid_i(copies_end[i]),
      .data_i (1'b0),
      .valid_o(host_gives[i]),
      .data_o (unused_data[i]),
      .empty_o(unused_empty[i])
    );
  end

  assign owed                    = owed_q + HostWidth'(host_gives[0]) + HostWidth'(host_gives[1]);
  assign gives[EngineOffCluster] = owed != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) owed_q <= '0;
    else owed_q <= owed - HostWidth'(gives[EngineOffCluster]);
  end

  pspin_credit #(
    .Credits(HostQueue)
  ) u_dma_credit (
    .clk_i,
    .rst_ni,
    .take_i     (takes[EngineOffCluster]),
    .give_i     (gives[EngineOffCluster]),
    .available_o(has_credit[EngineOffCluster]),
    .all_o      (all[EngineOffCluster]),
    .count_o    (left_dma)
  );

  pspin_credit #(
    .Credits(HostQueue)
  ) u_direct_credit (
    .clk_i,
    .rst_ni,
    .take_i     (takes[EngineDirect]),
    .give_i     (gives[EngineDirect]),
    .available_o(has_credit[EngineDirect]),
    .all_o      (all[EngineDirect]),
    .count_o    (left_direct)
  );

  //////////
  // Path //
  //////////

  logic     arrives, is_own, path_empty;
  command_t arriving;
  engine_e  arriving_engine;

  // The last cycle is a queue at the engine.
  pspin_delay #(
    .Width ($bits(command_t) + 1),
    .Cycles(PathCycles - 2)
  ) u_path (
    .clk_i,
    .rst_ni,
    .valid_i(taken_o),
    .data_i ({source == SourceWidth'(Clusters), taken}),
    .valid_o(arrives),
    .data_o ({is_own, arriving}),
    .empty_o(path_empty)
  );

  assign arriving_engine = engine_of(arriving.kind);

  /////////////
  // Engines //
  /////////////

  logic [3:0]              end_valid, end_ready;
  command_end_t [3:0]      ends;
  logic [511:0]            direct_data;
  logic [255:0]            status;
  logic                    status_take, status_empty, responses_empty;

  pspin_outbound #(
    .Queue     (OutboundQueue),
    .ReadCycles(ReadCycles),
    .L1Gap     (L1Gap),
    .L2Gap     (L2Gap)
  ) u_outbound (
    .clk_i,
    .rst_ni,
    .command_valid_i(arrives && arriving_engine == EngineOutbound),
    .command_i      (arriving),
    .credit_give_o  (gives[EngineOutbound]),
    .read_valid_o   (read_valid_o[0]),
    .read_ready_i   (read_ready_i[0]),
    .read_address_o (read_address_o[0]),
    .read_rvalid_i  (read_rvalid_i[0]),
    .read_data_i    (read_data_i[0]),
    .send_valid_o,
    .send_ready_i,
    .send_command_o,
    .send_data_o,
    .send_bytes_o,
    .send_first_o,
    .send_last_o,
    .end_valid_o    (end_valid[0]),
    .end_ready_i    (end_ready[0]),
    .end_o          (ends[0])
  );

  // Ports of both users of the host: [0] the off-cluster DMA engine, [1] the host-direct unit.
  typedef struct packed {
    logic [63:0]             address;
    logic [31:0]             size;
    logic [511:0]            data;
    logic [6:0]              bytes;
    logic                    first;
    logic                    last;
    logic [1:0]              id;
    logic [ContextWidth-1:0] execution_context;
    logic                    own;
  } host_write_t;

  typedef struct packed {
    logic [63:0]             address;
    logic [31:0]             size;
    logic [1:0]              id;
    logic [ContextWidth-1:0] execution_context;
  } host_read_t;

  logic [1:0]           write_valid, write_ready, ask_valid, ask_ready, data_ready;
  host_write_t [1:0]    writes;
  logic [6:0]           direct_bytes;
  host_read_t [1:0]     asks;
  hpu_id_t              reader;
  logic [SlotWidth-1:0] reader_slot;
  logic [1:0][31:0]     event_user;
  logic                 is_direct_data, own_write, is_orphan;

  always_comb begin
    is_orphan = 1'b0;
    for (int unsigned c = 0; c < Clusters; c++) begin
      for (int unsigned h = 0; h < Hpus; h++) begin
        for (int unsigned s = 0; s < Slots; s++) begin
          if (orphans_i[c][h][s] && reader == {ClusterWidth'(c), HpuWidth'(h)} && reader_slot == SlotWidth'(s)) is_orphan = 1'b1;
        end
      end
    end
  end

  pspin_off_cluster_dma #(
    .Queue      (HostQueue),
    .ReadCycles (ReadCycles),
    .StartCycles(CopyStart),
    .L1Gap      (CopyL1Gap),
    .L2Gap      (CopyL2Gap)
  ) u_off_cluster_dma (
    .clk_i,
    .rst_ni,
    .command_valid_i       (arrives && arriving_engine == EngineOffCluster),
    .command_i             (arriving),
    .credits_give_o        (copies_end),
    .reader_o              (reader),
    .reader_slot_o         (reader_slot),
    .reader_is_orphan_i    (is_orphan),
    .read_valid_o          (read_valid_o[1]),
    .read_ready_i          (read_ready_i[1]),
    .read_address_o        (read_address_o[1]),
    .read_rvalid_i         (read_rvalid_i[1]),
    .read_data_i           (read_data_i[1]),
    .write_valid_o,
    .write_ready_i,
    .write_o,
    .host_write_valid_o    (write_valid[0]),
    .host_write_ready_i    (write_ready[0]),
    .host_write_address_o  (writes[0].address),
    .host_write_size_o     (writes[0].size),
    .host_write_data_o     (writes[0].data),
    .host_write_bytes_o    (writes[0].bytes),
    .host_write_first_o    (writes[0].first),
    .host_write_last_o     (writes[0].last),
    .host_write_context_o  (writes[0].execution_context),
    .host_written_valid_i  (host_written_valid_i && host_written_id_i == 2'd0),
    .host_written_refused_i,
    .host_read_valid_o     (ask_valid[0]),
    .host_read_ready_i     (ask_ready[0]),
    .host_read_address_o   (asks[0].address),
    .host_read_size_o      (asks[0].size),
    .host_read_context_o   (asks[0].execution_context),
    .host_data_valid_i     (host_data_valid_i && !is_direct_data),
    .host_data_ready_o     (data_ready[0]),
    .host_data_i,
    .host_data_last_i,
    .host_data_refused_i,
    .end_valid_o           (end_valid[2:1]),
    .end_ready_i           (end_ready[2:1]),
    .end_o                 (ends[2:1]),
    .event_valid_o         (event_valid_o[2:1]),
    .event_ready_i         (event_ready_i[2:1]),
    .event_user_o          (event_user)
  );

  assign writes[0].id  = 2'd0;
  assign writes[0].own = 1'b0;
  assign asks[0].id    = 2'd0;

  for (genvar i = 0; i < 2; i++) begin : g_events
    always_comb begin
      event_o[i+1]      = '0;
      event_o[i+1].kind = NoticeCommand;
      event_o[i+1].user = event_user[i];
    end
  end

  pspin_host_direct #(
    .Queue(HostQueue)
  ) u_host_direct (
    .clk_i,
    .rst_ni,
    .command_valid_i       (arrives && arriving_engine == EngineDirect),
    .command_i             (arriving),
    .is_own_i              (is_own),
    .credit_give_o         (gives[EngineDirect]),
    .status_i              (status),
    .status_take_o         (status_take),
    .status_lost_o,
    .host_write_valid_o    (write_valid[1]),
    .host_write_ready_i    (write_ready[1]),
    .host_write_address_o  (writes[1].address),
    .host_write_data_o     (writes[1].data),
    .host_write_bytes_o    (direct_bytes),
    .host_write_context_o  (writes[1].execution_context),
    .host_write_own_o      (own_write),
    .host_written_valid_i  (host_written_valid_i && host_written_id_i != 2'd0),
    .host_written_own_i    (host_written_id_i == 2'd2),
    .host_written_refused_i,
    .host_read_valid_o     (ask_valid[1]),
    .host_read_ready_i     (ask_ready[1]),
    .host_read_address_o   (asks[1].address),
    .host_read_size_o      (asks[1].size),
    .host_read_context_o   (asks[1].execution_context),
    .host_data_valid_i     (host_data_valid_i && is_direct_data),
    .host_data_ready_o     (data_ready[1]),
    .host_data_i,
    .host_data_refused_i,
    .end_valid_o           (end_valid[3]),
    .end_ready_i           (end_ready[3]),
    .end_o                 (ends[3]),
    .end_data_o            (direct_data)
  );

  assign writes[1].bytes = direct_bytes;
  assign writes[1].size  = 32'(direct_bytes);
  assign writes[1].first = 1'b1;
  assign writes[1].last  = 1'b1;
  assign writes[1].id    = own_write ? 2'd2 : 2'd1;
  assign writes[1].own   = own_write;
  assign asks[1].id      = 2'd1;

  pspin_status #(
    .Contexts (Contexts),
    .HostQueue(HostQueue)
  ) u_status (
    .clk_i,
    .rst_ni,
    .context_write_i,
    .context_index_i,
    .context_descriptor_i,
    .failed_valid_i,
    .failed_ready_o,
    .failed_i,
    .idle_valid_i,
    .idle_ready_o,
    .idle_i,
    .event_valid_o    (event_valid_o[0]),
    .event_ready_i    (event_ready_i[0]),
    .event_o          (event_o[0]),
    .command_valid_o  (status_valid),
    .command_ready_i  (status_ready),
    .command_host_o   (status_host),
    .command_context_o(status_context),
    .status_o         (status),
    .status_take_i    (status_take),
    .empty_o          (status_empty)
  );

  //////////
  // Host //
  //////////

  host_write_t write;
  host_read_t  ask;

  pspin_join #(
    .Width($bits(host_write_t)),
    .N    (2)
  ) u_writes (
    .clk_i,
    .rst_ni,
    .valid_i(write_valid),
    .ready_o(write_ready),
    .data_i (writes),
    .last_i ({writes[1].last, writes[0].last}),
    .valid_o(host_write_valid_o),
    .ready_i(host_write_ready_i),
    .data_o (write)
  );

  pspin_join #(
    .Width($bits(host_read_t)),
    .N    (2)
  ) u_reads (
    .clk_i,
    .rst_ni,
    .valid_i(ask_valid),
    .ready_o(ask_ready),
    .data_i (asks),
    .last_i (2'b11),
    .valid_o(host_read_valid_o),
    .ready_i(host_read_ready_i),
    .data_o (ask)
  );

  assign host_write_address_o = write.address;
  assign host_write_size_o    = write.size;
  assign host_write_data_o    = write.data;
  assign host_write_bytes_o   = write.bytes;
  assign host_write_first_o   = write.first;
  assign host_write_last_o    = write.last;
  assign host_write_id_o      = write.id;
  assign host_write_context_o = write.execution_context;
  assign host_write_own_o     = write.own;
  assign host_read_address_o  = ask.address;
  assign host_read_size_o     = ask.size;
  assign host_read_id_o       = ask.id;
  assign host_read_context_o  = ask.execution_context;
  assign is_direct_data       = host_data_id_i == 2'd1;
  assign host_data_ready_o    = data_ready[is_direct_data];

  pspin_responses #(
    .ResponseCycles(ResponseCycles)
  ) u_responses (
    .clk_i,
    .rst_ni,
    .end_valid_i  (end_valid),
    .end_ready_o  (end_ready),
    .end_i        (ends),
    .direct_data_i(direct_data),
    .response_valid_o,
    .response_o,
    .empty_o      (responses_empty)
  );

  assign empty_o = &all && !taken_o && command_valid_i == '0 && path_empty && status_empty && responses_empty;

  // The number of credits is not used here.
  logic unused;
  assign unused = ^{left_outbound, left_dma, left_direct};

endmodule
