// SPDX-License-Identifier: Apache-2.0
// HPU driver (PsPIN III-B2): the device that passes tasks to an HPU, accepts its commands and transfers, and receives
// its completion. Its registers are those of the published interface (sdk/pspin/rt/runtime/include/hwsched.h).
//
// An access is accepted at once. The driver acts on it and responds in the next cycle, unless the HPU must wait: at the
// function pointer for a task, at the doorbell for its transfers and for room in the completion buffer, and for
// commands.
module pspin_hpu_driver
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters    = 4,
  parameter int unsigned Tasks       = 20,
  parameter int unsigned Commands    = 4,
  parameter int unsigned Buffered    = 1,
  parameter int unsigned DirectBytes = 32,
  localparam int unsigned PlaceWidth = Tasks > 1 ? $clog2(Tasks) : 1
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  hpu_id_t                  id_i,
  input  logic                     enable_i,
  input  logic                     drop_i,       // while disabled: its tasks end, because their messages were given up

  // Access of the core: set if the driver has this register, and the access itself.
  output logic                     has_register_o,
  input  logic                     access_valid_i,
  input  word_request_t            access_i,
  input  logic [2:0]               access_size_i,
  input  logic [31:0]              access_pc_i,
  output logic                     rvalid_o,
  output logic [31:0]              rdata_o,

  // Protection of the ranges read and written by commands and transfers; and the windows of the task.
  output range_t                   source_o,
  output logic                     source_writes_o,
  input  logic                     source_allowed_i,
  input  logic [31:0]              source_common_i,
  output range_t                   destination_o,
  input  logic                     destination_allowed_i,
  input  logic [31:0]              destination_common_i,
  output logic                     is_open_o,    // the handler runs
  output logic                     is_booted_o,  // the HPU has reached its first wait for a task
  output range_t                   packet_o,
  output range_t                   l2_packet_o,
  output range_t                   handler_memory_o,
  output range_t [Clusters-1:0]    scratchpads_o,

  // Recovery: misuse of a register, expiry of the watchdog, end of a failed task.
  output logic                     misuse_o,
  output outcome_t                 misuse_outcome_o,
  output logic                     bites_o,
  input  logic                     stop_i,
  input  logic                     abort_i,
  input  logic                     ends_i,
  input  outcome_t                 outcome_i,
  output logic                     can_end_o,

  // CSCHED: a task, and its context a cycle later.
  input  logic                     assign_valid_i,
  input  logic [PlaceWidth-1:0]    assign_place_i,
  input  task_t                    assign_task_i,
  input  range_t                   assign_packet_i,
  input  execution_context_t       context_i,
  input  range_t [Clusters-1:0]    scratchpads_i,
  output logic                     idle_o,
  output logic                     waits_o,
  output logic                     is_waiting_o,  // for a task, at the function pointer

  // CSCHED: finished tasks with all commands complete.
  output logic                     done_valid_o,
  input  logic                     done_ready_i,
  output logic [PlaceWidth-1:0]    done_place_o,
  output outcome_t                 done_outcome_o,

  // Command unit, through the arbiters.
  output logic                     command_valid_o,
  input  logic                     command_ready_i,
  output command_t                 command_o,
  input  logic                     response_valid_i,
  input  response_t                response_i,
  output logic [Commands-1:0]      orphans_o,

  // DMA engine of the cluster.
  output logic                     transfer_valid_o,
  input  logic                     transfer_ready_i,
  output logic [31:0]              transfer_from_o,
  output logic [31:0]              transfer_to_o,
  output logic [31:0]              transfer_size_o,
  input  logic                     transfer_landed_i,

  // Console and host.
  output logic                     console_valid_o,
  input  logic                     console_ready_i,
  output logic [7:0]               console_char_o,
  output logic                     terminate_o,

  // Events.
  output logic                     start_o,
  output logic                     end_o,
  output outcome_t                 end_outcome_o
);

  typedef enum logic [3:0] {
    None,
    Function,
    Task,
    Doorbell,
    Issue,
    Wait,
    Test,
    Command,
    Error,
    Transfer,
    Launch,
    Landed,
    Terminate,
    Output
  } register_e;

  localparam logic [31:0] Base       = 32'h1B20_5000;
  localparam logic [31:0] AtTerminate = 32'h1B20_0000;
  localparam logic [31:0] AtOutput    = 32'h1A10_4000;
  localparam int unsigned CommandWords = 8;
  localparam int unsigned TransferWords = 3;

  localparam outcome_t Done = '{EndDone, CauseNone, '0, '0};

  // ------------------------------------------------------------------------------------------------------------- the registers
  register_e   register;
  logic [11:0] offset, behind;
  logic        is_word, in_word;

  assign offset  = access_i.address[11:0];
  assign behind  = offset + 12'(access_size_i);
  assign in_word = 3'(offset[1:0]) + access_size_i <= 3'd4;
  assign is_word = access_size_i == 3'd4 && offset[1:0] == '0;

  always_comb begin
    register = None;
    if (access_i.address[31:12] == Base[31:12]) begin
      if (offset < 12'h004) register = in_word ? Function : None;
      else if (offset < 12'h050) register = behind <= 12'h050 ? Task : None;
      else if (offset < 12'h054) register = in_word ? Doorbell : None;
      else if (offset < 12'h058) register = in_word ? Error : None;
      else if (offset < 12'h080) register = None;
      else if (offset < 12'h084) register = in_word ? Issue : None;
      else if (offset < 12'h088) register = in_word ? Wait : None;
      else if (offset < 12'h08C) register = in_word ? Test : None;
      else if (offset < 12'h0AC) register = is_word ? Command : None;
      else if (offset < 12'h100) register = None;
      else if (offset < 12'h118) register = is_word && !offset[2] ? Transfer : None;
      else if (offset < 12'h11C) register = in_word ? Launch : None;
      else if (offset < 12'h120) register = None;
      else if (offset < 12'h124) register = in_word ? Landed : None;
    end else if (access_i.address[31:2] == AtTerminate[31:2]) begin
      register = in_word ? Terminate : None;
    end else if (access_i.address[31:2] == AtOutput[31:2]) begin
      register = in_word ? Output : None;
    end
  end
  assign has_register_o = register != None;

  // Access in progress. Stored data starts at bit 0.
  register_e   register_q;
  logic        stores_q, acts;
  logic [4:0]  index_q;
  logic [31:0] value_q, address_q, pc_q, mask;

  for (genvar i = 0; i < 4; i++) begin : g_mask
    assign mask[8*i+:8] = {8{access_i.be[i]}};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) register_q <= None;
    else if (access_valid_i) register_q <= register;
    else if (rvalid_o || abort_i) register_q <= None;
  end

  always_ff @(posedge clk_i) begin
    if (access_valid_i) begin
      stores_q  <= access_i.we && access_i.atop == AtopNone;
      index_q   <= register == Transfer ? 5'(offset[4:3]) : 5'((offset - (register == Task ? 12'h004 : 12'h08C)) >> 2);
      value_q   <= (access_i.wdata & mask) >> {offset[1:0], 3'b000};
      address_q <= access_i.address;
      pc_q      <= access_pc_i;
    end
  end

  // A handler killed in this cycle has no further effect.
  assign acts = register_q != None && !stop_i;

  // ------------------------------------------------------------------------------------------------------------------ the task
  logic                  has_task_q, is_new_q, is_ready_q, is_open_q, is_booted_q, is_idle_q;
  logic [PlaceWidth-1:0] place_q;
  task_t                 task_q;
  range_t                packet_q, handler;
  execution_context_t    context_q, now_context;
  range_t [Clusters-1:0] scratchpads_q;

  // The context arrives in the cycle after the assignment, and is used at once.
  assign now_context = is_new_q ? context_i : context_q;

  always_comb begin
    unique case (task_q.role)
      RoleHeader:  handler = now_context.handlers[0];
      RolePayload: handler = now_context.handlers[1];
      default:     handler = now_context.handlers[2];
    endcase
  end

  // From the doorbell on, the task's memory no longer belongs to the handler.
  assign is_open_o        = is_open_q && register_q != Doorbell;
  assign is_booted_o      = is_booted_q;
  assign packet_o         = packet_q;
  assign l2_packet_o      = '{task_q.her.address, 32'(task_q.her.size)};
  assign handler_memory_o = context_q.handler_memory;
  assign scratchpads_o    = scratchpads_q;
  assign idle_o           = is_idle_q && !assign_valid_i;
  assign start_o          = acts && register_q == Function && is_ready_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      has_task_q  <= 1'b0;
      is_new_q    <= 1'b0;
      is_ready_q  <= 1'b0;
      is_open_q   <= 1'b0;
      is_booted_q <= 1'b0;
      is_idle_q   <= 1'b0;
    end else begin
      has_task_q  <= assign_valid_i || (has_task_q && !end_o);
      is_new_q    <= assign_valid_i;
      is_ready_q  <= assign_valid_i || (is_ready_q && !start_o && !end_o);
      is_open_q   <= start_o || (is_open_q && !end_o);
      is_booted_q <= enable_i && (is_booted_q || (acts && register_q == Function));
      // While its tasks are dropped, the HPU accepts them without its core.
      if (drop_i) is_idle_q <= !assign_valid_i && (!has_task_q || end_o);
      else is_idle_q <= enable_i && !assign_valid_i &&
                        ((is_idle_q && is_booted_q) || (end_o && has_task_q) || (!is_booted_q && acts && register_q == Function));
    end
  end

  always_ff @(posedge clk_i) begin
    if (assign_valid_i) begin
      place_q  <= assign_place_i;
      task_q   <= assign_task_i;
      packet_q <= assign_packet_i;
    end
    if (is_new_q) begin
      context_q     <= context_i;
      scratchpads_q <= scratchpads_i;
    end
  end

  // Words of the task, in the order of the published task_t after the size of the handler. Programs see the scratchpads
  // of four clusters.
  logic [31:0] task_words [19];

  for (genvar i = 0; i < 4; i++) begin : g_scratchpad
    if (i < Clusters) begin : g_there
      assign task_words[5+i] = scratchpads_q[i].address;
      assign task_words[9+i] = scratchpads_q[i].size;
    end else begin : g_none
      assign task_words[5+i] = '0;
      assign task_words[9+i] = '0;
    end
  end

  assign task_words[0]  = handler.size;
  assign task_words[1]  = context_q.handler_memory.address;
  assign task_words[2]  = context_q.handler_memory.size;
  assign task_words[3]  = packet_q.address;
  assign task_words[4]  = packet_q.size;
  assign task_words[13] = context_q.host.address[63:32];
  assign task_words[14] = context_q.host.address[31:0];
  assign task_words[15] = context_q.host.size[63:32] == '0 ? context_q.host.size[31:0] : '1;
  assign task_words[16] = task_q.her.address;
  assign task_words[17] = task_q.her.message % Clusters;
  assign task_words[18] = task_q.her.flow;

  // -------------------------------------------------------------------------------------------------------------- the watchdog
  // It counts from the assignment on, at least three cycles; it stops at the doorbell, even if that has to wait. A limit
  // of 0 turns it off.
  logic        watches_q, rings;
  logic [31:0] left_q;

  assign bites_o = watches_q && left_q == '0;
  assign rings   = acts && register_q == Doorbell && has_landed;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) watches_q <= 1'b0;
    else watches_q <= ((is_new_q && context_i.watchdog_cycles != '0) || (watches_q && !bites_o)) && !rings && !end_o;
  end

  always_ff @(posedge clk_i) begin
    if (is_new_q) left_q <= context_i.watchdog_cycles > 32'd2 ? context_i.watchdog_cycles - 32'd2 : '0;
    else left_q <= left_q - 32'd1;
  end

  // ------------------------------------------------------------------------------------------------------------------- the end
  typedef struct packed {
    logic [PlaceWidth-1:0] place;
    outcome_t              outcome;
  } finished_t;

  localparam int unsigned BufferedWidth = $clog2(Buffered + 1);

  finished_t                finished_q [Buffered], finished [Buffered];
  logic [BufferedWidth-1:0] count_q;
  outcome_t                 failure_q, refusal, now_failure;
  logic                     refused, refused_finished, fails_q, has_failed, pops, feeds_back, in_flight, any_in_flight, drops;
  logic [PlaceWidth-1:0]    response_place;

  // A response refused by the host is a failure of its task, whether that has ended or not.
  assign refusal     = '{EndFaulted, CauseHost, '0, response_i.host};
  assign refused     = responds && response_i.is_refused;
  assign now_failure = fails_q ? failure_q : refusal;
  assign has_failed  = fails_q || (refused && !refused_finished && has_task_q);

  assign can_end_o = has_landed && (!has_task_q || count_q != BufferedWidth'(Buffered));
  assign drops     = drop_i && !enable_i && has_task_q;
  assign end_o     = (rings || ends_i || drops) && can_end_o;

  always_comb begin
    if (drops) end_outcome_o = '{EndMessageReset, CauseDisabled, '0, '0};
    else if (ends_i) end_outcome_o = outcome_i;
    else if (has_failed) end_outcome_o = now_failure;
    else end_outcome_o = Done;
  end

  assign feeds_back     = count_q != '0 && !in_flight;
  assign pops           = feeds_back && done_ready_i;
  assign done_valid_o   = feeds_back;
  assign done_place_o   = finished_q[0].place;
  assign done_outcome_o = finished_q[0].outcome;

  logic [Buffered-1:0] is_refused;
  for (genvar i = 0; i < Buffered; i++) begin : gen_refused
    assign is_refused[i] = refused && BufferedWidth'(i) < count_q && finished_q[i].place == response_place;
  end
  assign refused_finished = |is_refused;

  always_comb begin
    finished = finished_q;
    for (int unsigned i = 0; i < Buffered; i++) begin
      if (is_refused[i] && finished_q[i].outcome.kind == EndDone) finished[i].outcome = refusal;
    end
    for (int unsigned i = 0; i < Buffered; i++) begin
      if (end_o && has_task_q && BufferedWidth'(i) == count_q) finished[i] = '{place_q, end_outcome_o};
    end
    if (pops) begin
      for (int unsigned i = 1; i < Buffered; i++) finished[i-1] = finished[i];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q <= '0;
      fails_q <= 1'b0;
    end else begin
      count_q <= count_q + BufferedWidth'(end_o && has_task_q) - BufferedWidth'(pops);
      fails_q <= (has_failed || (reports && has_task_q)) && !end_o;
    end
  end

  always_ff @(posedge clk_i) begin
    finished_q <= finished;
    if (!fails_q) failure_q <= has_failed ? refusal : '{EndFaulted, CauseReported, '0, 64'(value_q)};
  end

  // -------------------------------------------------------------------------------------------------------------- the commands
  logic        responds, issues, issue_ready, issue_done, is_done, is_done_q, reports, exists, has_data, too_large;
  logic [31:0] number, words_q [CommandWords];
  command_t    command;

  assign responds = response_valid_i && response_i.hpu == id_i;
  assign reports  = acts && register_q == Error && stores_q;

  // The words are the kind and its arguments; bit 0 of the kind requests an event.
  always_comb begin
    command                   = '0;
    command.hpu               = id_i;
    command.execution_context = task_q.her.execution_context;
    command.data.address      = source_common_i;
    command.host              = {words_q[2], words_q[1]};
    command.user              = words_q[6];
    exists                    = 1'b1;
    has_data                  = 1'b1;
    too_large                 = 1'b0;
    unique case (words_q[0][31:1])
      31'd0: begin
        command.kind      = words_q[5] != '0 ? CommandToHost : CommandFromHost;
        command.data.size = words_q[4];
        command.has_event = words_q[0][0];
      end
      31'd1: begin
        command.kind      = CommandSend;
        command.data.size = words_q[5];
        command.host      = '0;
        command.node      = words_q[1];
        command.flow      = words_q[2];
      end
      31'd2: begin
        too_large              = words_q[3][31:1] > 31'(DirectBytes);
        exists                 = !too_large;
        has_data               = 1'b0;
        command.kind           = words_q[3][0] ? CommandHostDirect : CommandHostDirectRead;
        command.immediate      = {words_q[5], words_q[4]};
        command.immediate_size = words_q[3][0] && words_q[3][31:1] > 31'd8 ? 7'd8 : words_q[3][7:1];
      end
      default: begin
        exists   = 1'b0;
        has_data = 1'b0;
      end
    endcase
    if (!has_data) command.data = '0;
  end

  assign issues     = acts && register_q == Issue && has_task_q && exists && (!has_data || source_allowed_i);
  assign issue_done = issues && issue_ready;

  pspin_command_slots #(
    .Slots     (Commands),
    .PlaceWidth(PlaceWidth)
  ) u_slots (
    .clk_i,
    .rst_ni,
    .issue_valid_i   (issues),
    .issue_ready_o   (issue_ready),
    .issue_i         (command),
    .place_i         (place_q),
    .number_o        (number),
    .query_i         (value_q),
    .is_done_o       (is_done),
    .fails_i         (end_o && has_task_q && end_outcome_o.kind != EndDone),
    .failed_place_i  (place_q),
    .fed_back_place_i(finished_q[0].place),
    .in_flight_o     (in_flight),
    .any_in_flight_o (any_in_flight),
    .command_valid_o,
    .command_ready_i,
    .command_o,
    .response_valid_i(responds),
    .response_slot_i (response_i.slot),
    .response_place_o(response_place),
    .orphans_o
  );

  // Readable registers have a reset value, here and for transfers: unwritten words are 0.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      is_done_q <= 1'b0;
      words_q   <= '{default: '0};
    end else begin
      if (acts && stores_q && register_q == Test) is_done_q <= is_done;
      for (int unsigned i = 0; i < CommandWords; i++) begin
        if (acts && stores_q && register_q == Command && index_q == 5'(i)) words_q[i] <= value_q;
      end
    end
  end

  // ------------------------------------------------------------------------------------------------------------- the transfers
  logic        launches, launched, has_landed;
  logic [31:0] launched_q, landed_q, landed, transfer_q [TransferWords];

  // Transfers land in launch order; one landing in this cycle counts.
  assign landed     = landed_q + 32'(transfer_landed_i);
  assign has_landed = landed == launched_q;

  assign launches         = acts && register_q == Launch && source_allowed_i && destination_allowed_i;
  assign launched         = launches && transfer_ready_i;
  assign transfer_valid_o = launches;
  assign transfer_from_o  = source_common_i;
  assign transfer_to_o    = destination_common_i;
  assign transfer_size_o  = transfer_q[2];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      launched_q <= '0;
      landed_q   <= '0;
    end else begin
      if (launched) launched_q <= launched_q + 32'd1;
      landed_q <= landed;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      transfer_q <= '{default: '0};
    end else begin
      for (int unsigned i = 0; i < TransferWords; i++) begin
        if (acts && stores_q && register_q == Transfer && index_q == 5'(i)) transfer_q[i] <= value_q;
      end
    end
  end

  // A command reads or writes one range, a transfer reads one and writes another. No DMA engine reaches program memory,
  // which a handler may only read, so the check treats a transfer's source as a write.
  always_comb begin
    source_o        = '{transfer_q[0], transfer_q[2]};
    source_writes_o = 1'b1;
    if (register_q == Issue) begin
      source_o        = '{words_q[3], words_q[0][31:1] == 31'd1 ? words_q[5] : words_q[4]};
      source_writes_o = command.kind == CommandFromHost;
    end
  end
  assign destination_o = '{transfer_q[1], transfer_q[2]};

  always_comb begin
    misuse_o         = 1'b0;
    misuse_outcome_o = '{EndFaulted, CauseCommand, '0, 64'(source_common_i)};
    if (acts && register_q == Issue && !exists) begin
      misuse_o         = 1'b1;
      misuse_outcome_o = '{EndFaulted, CauseLoad, pc_q, 64'(address_q)};
    end else if (acts && register_q == Issue && has_data && !source_allowed_i) begin
      misuse_o = 1'b1;
    end else if (acts && register_q == Launch && !source_allowed_i) begin
      misuse_o = 1'b1;
    end else if (acts && register_q == Launch && !destination_allowed_i) begin
      misuse_o                 = 1'b1;
      misuse_outcome_o.address = 64'(destination_common_i);
    end
  end

  // ---------------------------------------------------------------------------------------------------------------- the answer
  always_comb begin
    rvalid_o = acts;
    rdata_o  = '0;
    unique case (register_q)
      Function: {rvalid_o, rdata_o} = {start_o, handler.address};
      Task:     for (int unsigned i = 0; i < 19; i++) if (index_q == 5'(i) && has_task_q && !is_new_q) rdata_o = task_words[i];
      Doorbell: rvalid_o = rings && can_end_o;
      Issue:    {rvalid_o, rdata_o} = {issue_done, number};
      Wait:     rvalid_o = acts && (!stores_q || is_done);
      Test:     rdata_o = 32'(is_done_q);
      Command:  for (int unsigned i = 0; i < CommandWords; i++) if (index_q == 5'(i)) rdata_o = words_q[i];
      Transfer: for (int unsigned i = 0; i < TransferWords; i++) if (index_q == 5'(i)) rdata_o = transfer_q[i];
      Launch:   {rvalid_o, rdata_o} = {launched, launched_q + 32'd1};
      Landed:   rdata_o = landed;
      Output:   rvalid_o = acts && (!stores_q || console_ready_i);
      default:  rdata_o = '0;
    endcase
  end

  assign console_valid_o = acts && register_q == Output && stores_q;
  assign console_char_o  = value_q[7:0];
  assign terminate_o     = acts && register_q == Terminate && stores_q;

  assign is_waiting_o = register_q == Function && !start_o;

  // Nothing is in flight, and nothing will be before the next task.
  assign waits_o = register_q == Function && !has_task_q && !assign_valid_i && count_q == '0 && !any_in_flight && has_landed;

endmodule
