// SPDX-License-Identifier: Apache-2.0
// Status of failures (PsPIN III-B2, B3): when a handler fails, or a message is given up for lack of packets, the driver
// on the host gets an event, and a host-direct command of the unit itself writes a status to the context's descriptor
// in host memory (crates/card/pspin-unit/src/status.rs). A failure in cycle T is a command in T + 1. With four pending,
// further failures wait.
module pspin_status
  import pspin_pkg::*;
#(
  parameter int unsigned Contexts  = 64,
  parameter int unsigned Depth     = 4,  // pending commands
  parameter int unsigned HostQueue = 8   // commands accepted and not executed, at most
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // From the registers: contexts, for their descriptors.
  input  logic                    context_write_i,
  input  logic [ContextWidth-1:0] context_index_i,
  input  logic [63:0]             context_descriptor_i,

  // From pspin_sched.
  input  logic                    failed_valid_i,
  output logic                    failed_ready_o,
  input  completion_t             failed_i,
  input  logic                    idle_valid_i,
  output logic                    idle_ready_o,
  input  idle_t                   idle_i,

  // To the event queue of the registers.
  output logic                    event_valid_o,
  input  logic                    event_ready_i,
  output driver_event_t           event_o,

  // To the arbiter of commands: address of the next status. Its data stays until the host-direct unit takes it.
  output logic                    command_valid_o,
  input  logic                    command_ready_i,
  output logic [63:0]             command_host_o,
  output logic [ContextWidth-1:0] command_context_o,
  output logic [255:0]            status_o,
  input  logic                    status_take_i,

  output logic                    empty_o
);

  localparam int unsigned IndexWidth = Contexts > 1 ? $clog2(Contexts) : 1;
  localparam int unsigned CountWidth = $clog2(Depth + 1);
  localparam int unsigned DataWidth  = $clog2(Depth + HostQueue + 1);

  ////////////
  // Events //
  ////////////

  logic                  takes, looks_q, finishes, told, is_open;
  logic [CountWidth-1:0] waiting_q;  // failures in look-up, or with pending commands

  // Messages without packets have priority.
  assign is_open        = waiting_q != CountWidth'(Depth) && !(looks_q && !finishes);
  assign takes          = event_valid_o && event_ready_i;
  assign event_valid_o  = (idle_valid_i || failed_valid_i) && is_open;
  assign idle_ready_o   = is_open && event_ready_i;
  assign failed_ready_o = idle_ready_o && !idle_valid_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waiting_q <= '0;
    else waiting_q <= waiting_q + CountWidth'(takes) - CountWidth'(command_valid_o && command_ready_i)
                                - CountWidth'(finishes && !told);
  end

  always_comb begin
    event_o = '0;
    if (idle_valid_i) begin
      event_o.kind              = NoticeIdle;
      event_o.cause             = idle_i.is_disabled ? CauseDisabled : CauseIdle;
      event_o.role              = 2'd3;
      event_o.execution_context = idle_i.execution_context;
      event_o.message           = idle_i.message;
      event_o.user              = 32'(idle_i.is_free);
    end else begin
      event_o.kind              = NoticeFailed;
      event_o.cause             = failed_i.outcome.cause;
      event_o.role              = failed_i.outcome.cause == CauseRequest ? 2'd3 : failed_i.role;
      event_o.hpu               = failed_i.hpu;
      event_o.execution_context = failed_i.her.execution_context;
      event_o.message           = failed_i.her.message;
      event_o.pc                = failed_i.outcome.pc;
      event_o.address           = failed_i.outcome.address;
    end
  end

  /////////////////
  // Descriptors //
  /////////////////

  // Descriptor of a context, and its number of failures. The registers write a row, or the unit with the number
  // incremented. If the same context fails in the next cycle, the row read then is stale. A context beyond the table, or
  // unwritten since the reset, has no row.
  logic                is_same_q, is_known;
  logic [Contexts-1:0] has_row_q;
  driver_event_t       event_q;
  logic [63:0]   descriptor;
  logic [31:0]   found, failures, before_q;

  assign finishes = looks_q && !context_write_i;
  assign told     = finishes && is_known && descriptor != '0;
  assign failures = (is_same_q ? before_q : found) + 1'b1;

  assign is_known = 32'(event_q.execution_context) < Contexts && has_row_q[IndexWidth'(event_q.execution_context)];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) has_row_q <= '0;
    else if (context_write_i) has_row_q[IndexWidth'(context_index_i)] <= 1'b1;
  end

  pspin_sram_2p #(
    .Rows (Contexts),
    .Width(96)
  ) u_descriptors (
    .clk_i,
    .we_i   (context_write_i || (looks_q && is_known)),
    .wrow_i (context_write_i ? IndexWidth'(context_index_i) : IndexWidth'(event_q.execution_context)),
    .wdata_i(context_write_i ? {context_descriptor_i, 32'd0} : {descriptor, failures}),
    .re_i   (takes),
    .rrow_i (IndexWidth'(event_o.execution_context)),
    .rdata_o({descriptor, found})
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) looks_q <= 1'b0;
    else looks_q <= takes || (looks_q && !finishes);
  end

  always_ff @(posedge clk_i) begin
    if (takes) begin
      event_q   <= event_o;
      is_same_q <= looks_q && event_q.execution_context == event_o.execution_context;
      before_q  <= failures;
    end
  end

  //////////////
  // Commands //
  //////////////

  // The arbiter needs the address when it accepts the command, the engine the status when it executes it.
  typedef struct packed {
    logic [63:0]             host;
    logic [ContextWidth-1:0] execution_context;
  } place_t;

  logic                 place_ready, no_place, status_ready, status_valid;
  logic [DataWidth-1:0] statuses;
  logic [255:0]         status;

  assign status = {32'd0, failures, 32'(event_q.role), event_q.message, event_q.address, event_q.pc, 32'(event_q.cause)};

  pspin_fallthrough #(
    .Width($bits(place_t)),
    .Depth(Depth)
  ) u_places (
    .clk_i,
    .rst_ni,
    .valid_i(told),
    .ready_o(place_ready),
    .data_i ({descriptor, event_q.execution_context}),
    .valid_o(command_valid_o),
    .ready_i(command_ready_i),
    .data_o ({command_host_o, command_context_o}),
    .empty_o(no_place)
  );

  pspin_fifo #(
    .Width(256),
    .Depth(Depth + HostQueue)
  ) u_statuses (
    .clk_i,
    .rst_ni,
    .valid_i(told),
    .ready_o(status_ready),
    .data_i (status),
    .valid_o(status_valid),
    .ready_i(status_take_i),
    .data_o (status_o),
    .count_o(statuses)
  );

  assign empty_o = statuses == '0 && !looks_q && !idle_valid_i && !failed_valid_i;

  // Widths suit all configurations; the count of pending ones prevents overflow of the queues.
  logic unused;
  assign unused = ^{failed_i, event_q, context_index_i, place_ready, no_place, status_ready, status_valid};

endmodule
