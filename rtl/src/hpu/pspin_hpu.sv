// SPDX-License-Identifier: Apache-2.0
// Handler processing unit (PsPIN III-B2): core, memory protection, and the driver through which the cluster's scheduler
// assigns tasks. All HPUs are the same module; ports carry the identity.
module pspin_hpu
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters     = 4,
  parameter int unsigned Tasks        = 20,       // task slots of a cluster
  parameter int unsigned StackBytes   = 1024,
  parameter int unsigned L1Bytes      = 1 << 20,
  parameter int unsigned HandlerBytes = 4 << 20,  // size of L2 handler memory
  parameter int unsigned PacketBytes  = 4 << 20,  // size of the L2 packet buffer
  parameter int unsigned ProgramBytes = 32 << 10,
  parameter int unsigned Commands     = 4,        // commands in flight
  parameter int unsigned Buffered     = 1,        // buffered completions
  parameter int unsigned DirectBytes  = 32,       // bytes of a host-direct command
  parameter int unsigned TrapCycles   = 20,
  parameter bit          CoreV        = 1'b1,
  localparam int unsigned PlaceWidth = Tasks > 1 ? $clog2(Tasks) : 1
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,

  // Identity, and registers of the unit.
  input  hpu_id_t                  id_i,
  input  cfg_t                     cfg_i,

  // pspin_icache (OBI). A request is withdrawn when the core is reset; a fetch outside of the code returns an error.
  output logic                     instr_req_o,
  input  logic                     instr_gnt_i,
  output logic [31:0]              instr_addr_o,
  input  logic                     instr_rvalid_i,
  input  logic [31:0]              instr_rdata_i,
  input  logic                     instr_error_i,

  // pspin_l1 of the cluster: grants in the cycle of the request, which may be withdrawn, and responds in the next; to
  // an atomic operation one cycle later. Addresses are global, here and below.
  output logic                     l1_valid_o,
  input  logic                     l1_gnt_i,
  output word_request_t            l1_o,
  input  logic                     l1_rvalid_i,
  input  logic [31:0]              l1_rdata_i,

  // pspin_pe_port: other memories. One access is outstanding at a time.
  output logic                     pe_valid_o,
  input  logic                     pe_ready_i,
  output word_request_t            pe_o,
  input  logic                     pe_rvalid_i,
  input  logic [31:0]              pe_rdata_i,

  // pspin_csched: a task, while the HPU is idle, and a cycle later the row of its context. A task may be assigned in
  // the cycle after one with idle_o. waits_o: the HPU waits for a task, and has nothing in flight.
  input  logic                     assign_valid_i,
  input  logic [PlaceWidth-1:0]    assign_place_i,
  input  task_t                    assign_task_i,
  input  range_t                   assign_packet_i,  // address and size in L1
  input  execution_context_t       context_i,
  input  range_t [Clusters-1:0]    scratchpads_i,
  output logic                     idle_o,
  output logic                     waits_o,

  // pspin_csched: finished tasks with all commands complete, in order.
  output logic                     done_valid_o,
  input  logic                     done_ready_i,
  output logic [PlaceWidth-1:0]    done_place_o,
  output outcome_t                 done_outcome_o,

  // Arbiter of the cluster for commands; responses for all HPUs. orphans_o: slots of commands whose task failed, for
  // which the off-cluster DMA engine discards the data read from the host.
  output logic                     command_valid_o,
  input  logic                     command_ready_i,
  output command_t                 command_o,
  input  logic                     response_valid_i,
  input  response_t                response_i,
  output logic [Commands-1:0]      orphans_o,

  // pspin_cluster_dma: transfers of the handler; transfer_landed_i: the oldest of this HPU has landed.
  output logic                     transfer_valid_o,
  input  logic                     transfer_ready_i,
  output logic [31:0]              transfer_from_o,
  output logic [31:0]              transfer_to_o,
  output logic [31:0]              transfer_size_o,
  input  logic                     transfer_landed_i,

  // Console and terminate register of the unit.
  output logic                     console_valid_o,
  input  logic                     console_ready_i,
  output logic [7:0]               console_char_o,
  output logic                     terminate_o
);

  localparam logic [31:0] BootStart = 32'h1A00_0000;
  localparam logic [4:2]  BootLast  = 3'd5;

  // ------------------------------------------------------------------------------------------------------------------ the core
  logic          core_clk, core_rst_n, is_waiting, req, gnt, second, rvalid, traps, trap_is_late;
  logic          fetches, fetch_gnt, fetch_rvalid;
  logic [31:0]   fetch_addr, fetch_rdata, rdata, pc_ex, trap_pc;
  logic [2:0]    size;
  cause_e        trap_cause;
  word_request_t request;
  logic          writes, expects;
  logic [3:0]    be;
  atop_e         atop;
  logic [31:0]   address, wdata, expected;
  logic [63:0]   cycles_q;

  pspin_core #(
    .CoreV(CoreV)
  ) u_core (
    .clk_i         (core_clk),
    .rst_ni        (core_rst_n),
    .boot_addr_i   (BootStart),
    .mtvec_i       (BootStart),
    .hart_id_i     (32'({id_i.cluster, id_i.hpu})),
    .cycles_i      (cycles_q),
    .instr_req_o   (fetches),
    .instr_gnt_i   (fetch_gnt),
    .instr_rvalid_i(fetch_rvalid),
    .instr_addr_o  (fetch_addr),
    .instr_rdata_i (fetch_rdata),
    .data_req_o    (req),
    .data_gnt_i    (gnt),
    .data_rvalid_i (rvalid),
    .data_we_o     (writes),
    .data_be_o     (be),
    .data_atop_o   (atop),
    .data_addr_o   (address),
    .data_wdata_o  (wdata),
    .data_rdata_i  (rdata),
    .data_size_o   (size),
    .data_second_o (second),
    .pc_ex_o       (pc_ex),
    .traps_o       (traps),
    .trap_pc_o     (trap_pc),
    .trap_cause_o  (trap_cause),
    .trap_is_late_o(trap_is_late)
  );

  pspin_reservation u_reservation (
    .clk_i,
    .rst_ni          (core_rst_n),
    .req_i           (req),
    .gnt_i           (gnt),
    .atop_i          (atop),
    .addr_i          (address),
    .rvalid_i        (rvalid),
    .rdata_i         (rdata),
    .expected_valid_o(expects),
    .expected_o      (expected)
  );

  assign request = '{writes, atop, address, be, wdata, expects, expected};

  // ---------------------------------------------------------------------------------------------------------------
  // instructions After a reset the core executes the boot ROM until it fetches from another address; handlers cannot
  // return there. The ROM delays its last instruction until the core may leave.
  logic        boots_q, from_rom, rom_gnt, rom_rvalid_q, may_leave, again;
  logic [1:0]  pending_q, pending, stale_q;
  logic [4:2]  rom_addr_q;
  logic [31:0] rom_rdata, stack_top;
  range_t      own_stack;

  assign own_stack = '{L1Start + 32'(id_i.cluster) * L1Span + 32'(id_i.hpu) * StackBytes, StackBytes};
  assign stack_top = own_stack.address + own_stack.size;

  pspin_boot_rom u_boot_rom (
    .entry_i    (again ? cfg_i.again : cfg_i.entry),
    .stack_top_i(stack_top),
    .cluster_i  (12'(id_i.cluster)),
    .hpu_i      (12'(id_i.hpu)),
    .addr_i     (rom_addr_q),
    .instr_o    (rom_rdata)
  );

  assign from_rom     = boots_q && fetch_addr[31:6] == BootStart[31:6];
  assign rom_gnt      = fetches && from_rom && (fetch_addr[4:2] != BootLast || may_leave);
  assign instr_req_o  = fetches && !from_rom;
  assign instr_addr_o = fetch_addr;
  assign fetch_gnt    = from_rom ? rom_gnt : instr_gnt_i;

  // Responses to requests from before a reset of the core are dropped.
  assign pending      = pending_q + 2'(instr_req_o && instr_gnt_i) - 2'(instr_rvalid_i);
  assign fetch_rvalid = rom_rvalid_q || (instr_rvalid_i && stale_q == '0);
  assign fetch_rdata  = rom_rvalid_q ? rom_rdata : instr_error_i ? '0 : instr_rdata_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      boots_q      <= 1'b1;
      rom_rvalid_q <= 1'b0;
      pending_q    <= '0;
      stale_q      <= '0;
    end else begin
      boots_q      <= !core_rst_n || (boots_q && !(instr_req_o && instr_gnt_i));
      rom_rvalid_q <= rom_gnt && core_rst_n;
      pending_q    <= pending;
      stale_q      <= !core_rst_n ? pending : stale_q - 2'(instr_rvalid_i && stale_q != '0);
    end
  end

  always_ff @(posedge clk_i) begin
    rom_addr_q <= fetch_addr[4:2];
  end

  // The time read by handlers advances while the core has no clock, and during its reset.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) cycles_q <= '0;
    else cycles_q <= cycles_q + 1'b1;
  end

  // While the core waits for a task without a fetch in flight, its clock is stopped.
  pspin_gate u_gate (
    .clk_i,
    .enable_i(!is_waiting || fetches || rom_rvalid_q || pending_q != '0 || !core_rst_n),
    .clk_o   (core_clk)
  );

  // --------------------------------------------------------------------------------------------------------------- its accesses
  logic                  is_open, is_booted, allowed, is_own_l1, denied, stop, aborts, remote_busy;
  logic                  has_register, driver_valid, driver_rvalid;
  logic [31:0]           common, driver_rdata;
  cause_e                denied_cause;
  windows_t              windows;
  range_t                packet, l2_packet, handler_memory;
  range_t [Clusters-1:0] of_task, scratchpads;
  word_request_t         routed;

  // The windows of the task are open while its handler runs. Before the first task, the program may write handler memory.
  always_comb begin
    windows             = '0;
    windows.own_stack   = own_stack;
    windows.static_data = cfg_i.static_data;
    windows.code        = cfg_i.code;
    scratchpads         = '0;
    if (is_open) begin
      windows.packet         = packet;
      windows.l2_packet      = l2_packet;
      windows.handler_memory = handler_memory;
      scratchpads            = of_task;
    end else if (!is_booted) begin
      windows.handler_memory = cfg_i.handler_data;
    end
  end

  pspin_protect #(
    .Clusters    (Clusters),
    .L1Bytes     (L1Bytes),
    .HandlerBytes(HandlerBytes),
    .PacketBytes (PacketBytes),
    .ProgramBytes(ProgramBytes)
  ) u_protect (
    .cluster_i    (id_i.cluster),
    .windows_i    (windows),
    .scratchpads_i(scratchpads),
    .range_i      ('{address, 32'(size)}),
    .writes_i     (writes || atop != AtopNone),
    .allowed_o    (allowed),
    .is_own_l1_o  (is_own_l1),
    .common_o     (common)
  );

  pspin_lsu_mux u_lsu_mux (
    .clk_i,
    .rst_ni,
    .req_i          (req),
    .gnt_o          (gnt),
    .request_i      (request),
    .second_i       (second),
    .rvalid_o       (rvalid),
    .rdata_o        (rdata),
    .allowed_i      (allowed),
    .is_own_l1_i    (is_own_l1),
    .common_i       (common),
    .denied_o       (denied),
    .denied_cause_o (denied_cause),
    .stop_i         (stop),
    .abort_i        (aborts),
    .remote_busy_o  (remote_busy),
    .l1_valid_o,
    .l1_gnt_i,
    .l1_rvalid_i,
    .l1_rdata_i,
    .pe_valid_o,
    .pe_ready_i,
    .pe_rvalid_i,
    .pe_rdata_i,
    .request_o      (routed),
    .has_register_i (has_register),
    .driver_valid_o (driver_valid),
    .driver_rvalid_i(driver_rvalid),
    .driver_rdata_i (driver_rdata)
  );

  assign l1_o = routed;
  assign pe_o = routed;

  // ---------------------------------------------------------------------------------------------------------------- the recovery
  logic     misuse, bites, ends, can_end, is_code;
  outcome_t misuse_outcome, outcome;

  // A fetch outside the code fails like an illegal instruction, and counts before its execution.
  assign is_code = trap_pc >= cfg_i.code.address && trap_pc - cfg_i.code.address < cfg_i.code.size;

  pspin_recovery #(
    .TrapCycles(TrapCycles)
  ) u_recovery (
    .clk_i,
    .rst_ni,
    .enable_i        (cfg_i.enable),
    .traps_i         (traps),
    .trap_age_i      (2'(trap_is_late) + 2'(!is_code)),
    .trap_i          ('{EndFaulted, is_code ? trap_cause : CauseFetch, trap_pc, '0}),
    .denied_i        (denied),
    .denied_early_i  (atop != AtopNone || 3'(address[1:0]) + size > 3'd4),
    .denial_i        ('{EndFaulted, denied_cause, pc_ex, 64'(address)}),
    .misuse_i        (misuse),
    .misuse_outcome_i(misuse_outcome),
    .bites_i         (bites),
    .remote_busy_i   (remote_busy),
    .stop_o          (stop),
    .abort_o         (aborts),
    .ends_o          (ends),
    .outcome_o       (outcome),
    .can_end_i       (can_end),
    .core_rst_no     (core_rst_n),
    .may_leave_o     (may_leave),
    .again_o         (again)
  );

  // ------------------------------------------------------------------------------------------------------------------ the driver
  range_t      source, destination;
  logic        source_writes, source_allowed, destination_allowed;
  logic [31:0] source_common, destination_common;

  pspin_protect #(
    .Clusters    (Clusters),
    .L1Bytes     (L1Bytes),
    .HandlerBytes(HandlerBytes),
    .PacketBytes (PacketBytes),
    .ProgramBytes(ProgramBytes)
  ) u_protect_source (
    .cluster_i    (id_i.cluster),
    .windows_i    (windows),
    .scratchpads_i(scratchpads),
    .range_i      (source),
    .writes_i     (source_writes),
    .allowed_o    (source_allowed),
    .is_own_l1_o  (),
    .common_o     (source_common)
  );

  pspin_protect #(
    .Clusters    (Clusters),
    .L1Bytes     (L1Bytes),
    .HandlerBytes(HandlerBytes),
    .PacketBytes (PacketBytes),
    .ProgramBytes(ProgramBytes)
  ) u_protect_destination (
    .cluster_i    (id_i.cluster),
    .windows_i    (windows),
    .scratchpads_i(scratchpads),
    .range_i      (destination),
    .writes_i     (1'b1),
    .allowed_o    (destination_allowed),
    .is_own_l1_o  (),
    .common_o     (destination_common)
  );

  pspin_hpu_driver #(
    .Clusters   (Clusters),
    .Tasks      (Tasks),
    .Commands   (Commands),
    .Buffered   (Buffered),
    .DirectBytes(DirectBytes)
  ) u_driver (
    .clk_i,
    .rst_ni,
    .id_i,
    .enable_i             (cfg_i.enable),
    .drop_i               (cfg_i.drop),
    .has_register_o       (has_register),
    .access_valid_i       (driver_valid),
    .access_i             (request),
    .access_size_i        (size),
    .access_pc_i          (pc_ex),
    .rvalid_o             (driver_rvalid),
    .rdata_o              (driver_rdata),
    .source_o             (source),
    .source_writes_o      (source_writes),
    .source_allowed_i     (source_allowed),
    .source_common_i      (source_common),
    .destination_o        (destination),
    .destination_allowed_i(destination_allowed),
    .destination_common_i (destination_common),
    .is_open_o            (is_open),
    .is_booted_o          (is_booted),
    .packet_o             (packet),
    .l2_packet_o          (l2_packet),
    .handler_memory_o     (handler_memory),
    .scratchpads_o        (of_task),
    .misuse_o             (misuse),
    .misuse_outcome_o     (misuse_outcome),
    .bites_o              (bites),
    .stop_i               (stop),
    .abort_i              (aborts),
    .ends_i               (ends),
    .outcome_i            (outcome),
    .can_end_o            (can_end),
    .assign_valid_i,
    .assign_place_i,
    .assign_task_i,
    .assign_packet_i,
    .context_i,
    .scratchpads_i,
    .idle_o,
    .waits_o,
    .is_waiting_o         (is_waiting),
    .done_valid_o,
    .done_ready_i,
    .done_place_o,
    .done_outcome_o,
    .command_valid_o,
    .command_ready_i,
    .command_o,
    .response_valid_i,
    .response_i,
    .orphans_o,
    .transfer_valid_o,
    .transfer_ready_i,
    .transfer_from_o,
    .transfer_to_o,
    .transfer_size_o,
    .transfer_landed_i,
    .console_valid_o,
    .console_ready_i,
    .console_char_o,
    .terminate_o,
    .start_o              (),
    .end_o                (),
    .end_outcome_o        ()
  );

endmodule
