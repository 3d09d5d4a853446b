// SPDX-License-Identifier: Apache-2.0
// Control registers of the unit, for the driver on the host (docs/pspin-integration.md): settings of all HPUs, the table of contexts, the
// event queue, the console, and the counters. The addresses come from crates/base/abi/src/pspin.rs.
module pspin_regs
  import pspin_pkg::*;
  import pspin_abi_pkg::*;
#(
  parameter int unsigned Clusters       = 4,
  parameter int unsigned Hpus           = 8,
  parameter int unsigned Queues         = 256,
  parameter int unsigned Contexts       = 64,
  parameter int unsigned L1Bytes        = 1048576,
  parameter int unsigned L1Scratchpad   = 40960,
  parameter int unsigned HandlerBytes   = 4194304,
  parameter int unsigned PacketBytes    = 4194304,
  parameter int unsigned ProgramBytes   = 32768,
  parameter int unsigned MaxPacketBytes = 9216,
  parameter int unsigned Events         = 16,      // events pending for the driver
  parameter int unsigned Characters     = 64,      // characters pending for the driver
  parameter int unsigned Step           = 8,       // width of a counter's increment
  parameter int unsigned HostTimeout    = 4096,    // value of HOST_TIMEOUT after a reset
  localparam int unsigned Sources       = 3 + Clusters
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  // Driver on the host: one access at a time, answered in the next cycle.
  input  logic                                ctrl_valid_i,
  input  logic                                ctrl_we_i,
  input  logic [15:0]                         ctrl_address_i,
  input  logic [31:0]                         ctrl_wdata_i,
  output logic                                ctrl_rvalid_o,
  output logic [31:0]                         ctrl_rdata_o,
  output logic                                irq_o,

  // To the ports of the host.
  output logic [31:0]                         host_timeout_o,

  // To the clusters, and other holders of the table of contexts.
  output cfg_t                                cfg_o,
  output logic                                context_write_o,
  output logic [ContextWidth-1:0]             context_index_o,
  output execution_context_t                  context_o,
  output logic                                scratchpad_write_o,
  output logic [ContextWidth-1:0]             scratchpad_index_o,
  output logic [ClusterWidth-1:0]             scratchpad_cluster_o,
  output range_t                              scratchpad_o,

  // To pspin_sched, which responds in the same cycle.
  output logic                                reset_valid_o,
  output logic [31:0]                         reset_message_o,
  input  logic                                reset_done_i,
  input  logic                                reset_free_i,

  // From the command unit: failures, and completions of commands. Ready does not depend on valid.
  input  logic [2:0]                          event_valid_i,
  output logic [2:0]                          event_ready_o,
  input  driver_event_t [2:0]                 event_i,

  // From the clusters: a program requests the end of the run; console characters of HPUs.
  input  logic [Clusters-1:0]                 terminate_i,
  input  logic [Clusters-1:0]                 console_valid_i,
  output logic [Clusters-1:0]                 console_ready_o,
  input  logic [Clusters-1:0][7:0]            console_char_i,
  input  logic [Clusters-1:0][HpuWidth-1:0]   console_hpu_i,

  // From all modules: nothing in flight; and events of this cycle, by Counter*, that the registers cannot see.
  input  logic                                idle_i,
  input  logic [CounterRows-1:0][Step-1:0]    counts_i
);

  // Checks of the interface between hardware and software: pspin_pkg has the types, the list of crates/base/abi the
  // numbers.
  if (32'(NoticeFailed) != EventFailed || 32'(NoticeIdle) != EventIdle || 32'(NoticeCommand) != EventCommand ||
      32'(NoticeTerminated) != EventTerminated) begin : g_check_events
    $fatal(1, "the kinds of events are not those of pspin_abi_pkg");
  end
  if (32'(CauseLoad) != StatusLoad || 32'(CauseStore) != StatusStore || 32'(CauseMisaligned) != StatusMisaligned ||
      32'(CauseFetch) != StatusFetch || 32'(CauseIllegal) != StatusIllegal || 32'(CauseBreakpoint) != StatusBreakpoint ||
      32'(CauseCommand) != StatusCommand || 32'(CauseHost) != StatusHost || 32'(CauseWatchdog) != StatusWatchdog ||
      32'(CauseIdle) != StatusIdle || 32'(CauseReported) != StatusReported || 32'(CauseRequest) != StatusRequest ||
      32'(CauseDisabled) != StatusDisabled) begin : g_check_causes
    $fatal(1, "the causes of failures are not those of pspin_abi_pkg");
  end
  if (L1Start != MapL1 || HandlerStart != MapHandler || PacketStart != MapPacket || ProgramStart != MapProgram) begin : g_check_map
    $fatal(1, "the memories do not begin at the addresses of pspin_abi_pkg");
  end
  if (Contexts > 1 << ContextWidth || Clusters > 1 << ClusterWidth || Hpus > 1 << HpuWidth) begin : g_check_widths
    $fatal(1, "a number of pspin_pkg is too narrow");
  end

  ////////////
  // Access //
  ////////////

  logic        writes, reads, pops_event, pops_character;
  logic [15:0] address;
  logic [31:0] wdata;

  assign address = {ctrl_address_i[15:2], 2'b00};
  assign wdata   = ctrl_wdata_i;
  assign writes  = ctrl_valid_i && ctrl_we_i;
  assign reads   = ctrl_valid_i && !ctrl_we_i;

  // Writable words, by address. `hits` is true if an address is that of a register.
  function automatic logic hits(logic [15:0] at, logic [31:0] register);
    return 32'(at) == register;
  endfunction

  // Offset of a word after a register.
  function automatic int unsigned behind(logic [15:0] at, logic [31:0] register);
    return (32'(at) - register) >> 2;
  endfunction

  localparam int unsigned Settings     = ((ControlBootBytes - ControlEnable) >> 2) + 1;
  localparam int unsigned ContextWords = ((ControlContextCompletionBytes - ControlContextTenant) >> 2) + 1;
  localparam int unsigned PadWords     = ((ControlScratchpadCluster - ControlScratchpadAddress) >> 2) + 1;

  logic [Settings-1:0][31:0]     settings_q;
  logic [ContextWords-1:0][31:0] row_q;
  logic [PadWords-1:0][31:0]     pad_q;
  logic [1:0]                    irq_enable_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      settings_q   <= '0;
      row_q        <= '0;
      pad_q        <= '0;
      irq_enable_q <= '0;
      host_timeout_o <= HostTimeout;
    end else if (writes) begin
      if (hits(address, ControlHostTimeout)) host_timeout_o <= wdata;
      for (int unsigned i = 0; i < Settings; i++) if (hits(address, ControlEnable + 4 * i)) settings_q[i] <= wdata;
      if (hits(address, ControlIrqEnable)) irq_enable_q <= wdata[1:0];
      for (int unsigned i = 0; i < ContextWords; i++) if (hits(address, ControlContextTenant + 4 * i)) row_q[i] <= wdata;
      for (int unsigned i = 0; i < PadWords; i++) if (hits(address, ControlScratchpadAddress + 4 * i)) pad_q[i] <= wdata;
    end
  end

  always_comb begin
    cfg_o.enable               = settings_q[0][0];
    cfg_o.drop                 = 1'b0;  // pspin_unit decides
    cfg_o.entry                = settings_q[(ControlEntry - ControlEnable) >> 2];
    cfg_o.again                = settings_q[(ControlAgain - ControlEnable) >> 2];
    cfg_o.static_data.address  = settings_q[(ControlStaticAddress - ControlEnable) >> 2];
    cfg_o.static_data.size     = settings_q[(ControlStaticBytes - ControlEnable) >> 2];
    cfg_o.code.address         = settings_q[(ControlCodeAddress - ControlEnable) >> 2];
    cfg_o.code.size            = settings_q[(ControlCodeBytes - ControlEnable) >> 2];
    cfg_o.handler_data.address = settings_q[(ControlBootAddress - ControlEnable) >> 2];
    cfg_o.handler_data.size    = settings_q[(ControlBootBytes - ControlEnable) >> 2];
  end

  //////////////
  // Contexts //
  //////////////

  // A word of the row, by its register.
  function automatic logic [31:0] word(logic [ContextWords-1:0][31:0] row, logic [31:0] register);
    return row[(register - ControlContextTenant) >> 2];
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      context_write_o    <= 1'b0;
      scratchpad_write_o <= 1'b0;
      reset_valid_o      <= 1'b0;
    end else begin
      context_write_o    <= writes && hits(address, ControlContextWrite) && wdata < Contexts;
      scratchpad_write_o <= writes && hits(address, ControlScratchpadWrite) && wdata < Contexts;
      reset_valid_o      <= writes && hits(address, ControlResetMessage);
    end
  end

  logic [31:0] number_q;

  always_ff @(posedge clk_i) begin
    if (writes) number_q <= wdata;
  end

  assign context_index_o      = number_q[ContextWidth-1:0];
  assign scratchpad_index_o   = number_q[ContextWidth-1:0];
  assign scratchpad_cluster_o = pad_q[2][ClusterWidth-1:0];
  assign scratchpad_o         = {pad_q[0], pad_q[1]};
  assign reset_message_o      = number_q;

  always_comb begin
    context_o.tenant                 = 8'(word(row_q, ControlContextTenant));
    context_o.is_pinned              = row_q[1][31];
    context_o.pin                    = 8'(word(row_q, ControlContextPin));
    context_o.descriptor             = {word(row_q, ControlContextDescriptorHigh), word(row_q, ControlContextDescriptor)};
    context_o.idle_cycles            = word(row_q, ControlContextIdle);
    context_o.watchdog_cycles        = word(row_q, ControlContextWatchdog);
    context_o.host.address           = {word(row_q, ControlContextHostHigh), word(row_q, ControlContextHost)};
    context_o.host.size              = {word(row_q, ControlContextHostBytesHigh), word(row_q, ControlContextHostBytes)};
    context_o.handler_memory.address = word(row_q, ControlContextHandlerMemory);
    context_o.handler_memory.size    = word(row_q, ControlContextHandlerMemoryBytes);
    context_o.handlers[RoleHeader]     = {word(row_q, ControlContextHeader), word(row_q, ControlContextHeaderBytes)};
    context_o.handlers[RolePayload]    = {word(row_q, ControlContextPayload), word(row_q, ControlContextPayloadBytes)};
    context_o.handlers[RoleCompletion] = {word(row_q, ControlContextCompletion), word(row_q, ControlContextCompletionBytes)};
  end

  // Result of the latest reset of a message.
  logic reset_done_q, reset_free_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {reset_done_q, reset_free_q} <= '0;
    else if (reset_valid_o) {reset_done_q, reset_free_q} <= {reset_done_i, reset_free_i};
  end

  ////////////
  // Events //
  ////////////

  localparam int unsigned SourceWidth = $clog2(Sources);

  // Each source queues here for its turn.
  logic [2:0]          told_valid;
  driver_event_t [2:0] told;
  logic [2:0][1:0]     tolds;

  logic [Clusters-1:0]    terminate_q;
  logic [Sources-1:0]     event_grants;
  logic                   any_event, event_ready, event_valid;
  logic [SourceWidth-1:0] event_source;
  driver_event_t          event_in, event_out;

  pspin_rr_arbiter #(
    .N(Sources)
  ) u_event_arbiter (
    .clk_i,
    .rst_ni,
    .requests_i({terminate_q, told_valid}),
    .take_i    (1'b1),
    .valid_o   (any_event),
    .index_o   (event_source)
  );

  assign event_grants = Sources'(any_event) << event_source;

  for (genvar i = 0; i < 3; i++) begin : g_told
    pspin_fifo #(
      .Width($bits(driver_event_t)),
      .Depth(2)
    ) u_told (
      .clk_i,
      .rst_ni,
      .valid_i(event_valid_i[i]),
      .ready_o(event_ready_o[i]),
      .data_i (event_i[i]),
      .valid_o(told_valid[i]),
      .ready_i(event_grants[i]),
      .data_o (told[i]),
      .count_o(tolds[i])
    );
  end

  always_comb begin
    event_in      = '0;
    event_in.kind = NoticeTerminated;
    for (int unsigned i = 0; i < Clusters; i++) begin
      if (event_source == SourceWidth'(3 + i)) event_in.hpu.cluster = ClusterWidth'(i);
    end
    for (int unsigned i = 0; i < 3; i++) if (event_source == SourceWidth'(i)) event_in = told[i];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) terminate_q <= '0;
    else terminate_q <= (terminate_q & ~event_grants[Sources-1:3]) | terminate_i;
  end

  pspin_sram_fifo #(
    .Width($bits(driver_event_t)),
    .Depth(Events)
  ) u_events (
    .clk_i,
    .rst_ni,
    .valid_i(any_event),
    .ready_o(event_ready),
    .data_i (event_in),
    .valid_o(event_valid),
    .ready_i(pops_event),
    .data_o (event_out)
  );

  /////////////
  // Console //
  /////////////

  localparam int unsigned ConsoleWidth = Clusters > 1 ? $clog2(Clusters) : 1;
  localparam int unsigned CharsWidth   = $clog2(Characters + 1);

  typedef struct packed {
    logic [ConsoleWidth-1:0] cluster;
    logic [HpuWidth-1:0]     hpu;
    logic [7:0]              letter;
  } character_t;

  logic                    any_character, character_ready, character_valid;
  logic [ConsoleWidth-1:0] speaker;
  logic [CharsWidth-1:0]   characters;
  character_t              character;

  pspin_rr_arbiter #(
    .N(Clusters)
  ) u_console_arbiter (
    .clk_i,
    .rst_ni,
    .requests_i(console_valid_i),
    .take_i    (1'b1),
    .valid_o   (any_character),
    .index_o   (speaker)
  );

  assign console_ready_o = Clusters'(any_character) << speaker;

  pspin_fifo #(
    .Width($bits(character_t)),
    .Depth(Characters)
  ) u_console (
    .clk_i,
    .rst_ni,
    .valid_i(any_character),
    .ready_o(character_ready),
    .data_i ({speaker, console_hpu_i[speaker], console_char_i[speaker]}),
    .valid_o(character_valid),
    .ready_i(pops_character),
    .data_o (character),
    .count_o(characters)
  );

  //////////////
  // Counters //
  //////////////

  localparam int unsigned CounterWidth = $clog2(CounterRows);

  logic [CounterRows-1:0][Step-1:0] counts;
  logic [CounterWidth-1:0]          counter;
  logic [63:0]                      value;
  logic                             is_counter;

  always_comb begin
    counts                    = counts_i;
    counts[CounterCycles]     = Step'(1);
    counts[CounterLostEvents] = Step'(any_event && !event_ready);
    counts[CounterLostOutput] = Step'(any_character && !character_ready);
  end

  assign is_counter = 32'(address) >= ControlCounters && behind(address, ControlCounters) < 2 * CounterRows;
  assign counter    = CounterWidth'(behind(address, ControlCounters) >> 1);

  pspin_counters #(
    .N   (CounterRows),
    .Step(Step)
  ) u_counters (
    .clk_i,
    .rst_ni,
    .add_i   (counts),
    .freeze_i(reads && hits(address, ControlCounters)),
    .index_i (counter),
    .value_o (value)
  );

  ///////////
  // Reads //
  ///////////

  logic [31:0] rdata;

  always_comb begin
    rdata = '0;
    unique case (32'(address))
      ControlId:               rdata = AbiId;
      ControlVersion:          rdata = AbiVersion;
      ControlClusters:         rdata = Clusters;
      ControlHpus:             rdata = Hpus;
      ControlQueues:           rdata = Queues;
      ControlContexts:         rdata = Contexts;
      ControlL1Bytes:          rdata = L1Bytes;
      ControlL1Scratchpad:     rdata = L1Scratchpad;
      ControlHandlerBytes:     rdata = HandlerBytes;
      ControlPacketBytes:      rdata = PacketBytes;
      ControlProgramBytes:     rdata = ProgramBytes;
      ControlMaxPacketBytes:   rdata = MaxPacketBytes;
      ControlState:            rdata = {29'd0, reset_free_q, reset_done_q, idle_i};
      ControlIrqEnable:        rdata = 32'(irq_enable_q);
      ControlHostTimeout:      rdata = host_timeout_o;
      ControlEventKind:        rdata = event_valid ? 32'(event_out.kind) : 32'd0;
      ControlEventCause:       rdata = {22'd0, event_out.role, 4'd0, event_out.cause};
      ControlEventMessage:     rdata = event_out.message;
      ControlEventHpu:         rdata = {16'd0, event_out.hpu.cluster, 8'(event_out.hpu.hpu)};
      ControlEventContext:     rdata = 32'(event_out.execution_context);
      ControlEventUser:        rdata = event_out.user;
      ControlEventPc:          rdata = event_out.pc;
      ControlEventAddress:     rdata = event_out.address[31:0];
      ControlEventAddressHigh: rdata = event_out.address[63:32];
      ControlConsole:
      if (character_valid) rdata = {1'b1, 7'd0, 8'(character.cluster), 8'(character.hpu), character.letter};
      default: begin
        for (int unsigned i = 0; i < Settings; i++) if (hits(address, ControlEnable + 4 * i)) rdata = settings_q[i];
        for (int unsigned i = 0; i < ContextWords; i++) if (hits(address, ControlContextTenant + 4 * i)) rdata = row_q[i];
        for (int unsigned i = 0; i < PadWords; i++) if (hits(address, ControlScratchpadAddress + 4 * i)) rdata = pad_q[i];
        if (is_counter) rdata = address[2] ? value[63:32] : value[31:0];
      end
    endcase
  end

  assign pops_event     = writes && hits(address, ControlEventPop);
  assign pops_character = reads && hits(address, ControlConsole);
  assign irq_o          = (irq_enable_q[0] && event_valid) || (irq_enable_q[1] && character_valid);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ctrl_rvalid_o <= 1'b0;
    else ctrl_rvalid_o <= ctrl_valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (reads) ctrl_rdata_o <= rdata;
  end

  // Registers are words; the remaining signals of counters and queues are unused.
  logic unused;
  assign unused = ^{ctrl_address_i[1:0], tolds, characters, counts_i};

endmodule
