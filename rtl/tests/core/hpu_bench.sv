// SPDX-License-Identifier: Apache-2.0
// HPU with memories that respond at once, and its surroundings as ports: the bench plays CSCHED, command unit and DMA
// engine.
module hpu_bench
  import pspin_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        enable_i,

  // Next task; its context has one range in handler memory, and one scratchpad.
  input  logic        assign_i,
  input  logic [4:0]  place_i,
  input  logic [31:0] function_i,
  input  logic [31:0] watchdog_i,
  input  logic [31:0] packet_bytes_i,
  output logic        idle_o,
  output logic        waits_o,

  output logic        start_o,
  output logic        end_o,
  output logic        done_valid_o,
  input  logic        done_ready_i,
  output logic [4:0]  done_place_o,
  output logic [2:0]  kind_o,
  output logic [3:0]  cause_o,
  output logic [31:0] pc_o,
  output logic [63:0] address_o,

  output logic        command_valid_o,
  input  logic        command_ready_i,
  output logic [2:0]  command_kind_o,
  output logic [2:0]  command_slot_o,
  output logic [63:0] command_host_o,
  output logic [31:0] command_address_o,
  output logic [31:0] command_size_o,
  output logic        command_event_o,
  output logic [31:0] command_user_o,
  output logic [6:0]  command_direct_o,
  input  logic        response_i,
  input  logic [2:0]  response_slot_i,
  input  logic        response_refused_i,
  input  logic [4:0]  response_hpu_i,
  output logic [3:0]  orphans_o,

  output logic        transfer_valid_o,
  input  logic        transfer_ready_i,
  output logic [31:0] transfer_from_o,
  output logic [31:0] transfer_to_o,
  output logic [31:0] transfer_size_o,
  input  logic        landed_i,

  output logic        console_valid_o,
  input  logic        console_ready_i,
  output logic [7:0]  console_char_o,
  output logic        terminate_o,

  // Blocks a memory.
  input  logic        l1_blocks_i,
  input  logic        remote_blocks_i,
  output logic        remote_asks_o
);

  localparam logic [31:0] Program = 32'h1D00_0000;
  localparam logic [31:0] Scratch = 32'h1000_8000;
  localparam hpu_id_t     Id      = '{8'd0, 5'd0};

  cfg_t               cfg;
  task_t              work;
  execution_context_t row;
  range_t [3:0]       scratchpads;
  logic [31:0]        function_q, watchdog_q;
  outcome_t           outcome;
  command_t           command;
  response_t          response;
  word_request_t      l1, remote;
  logic               instr_req, instr_rvalid_q, instr_error_q, l1_valid, l1_gnt, l1_rvalid, pe_valid, pe_rvalid;
  logic [31:0]        instr_addr, instr_rdata, l1_rdata, pe_rdata;

  // The program may write to the scratchpad during its start.
  assign cfg = '{enable_i, 1'b0, Program, again, '{32'h1C00_0000, 32'h1_0000}, '{Program, 32'h8000}, '{Scratch, 32'h3000}};

  // Address of __rt_again, which the bench finds in the program.
  logic [31:0] again /* verilator public_flat_rw */;

  always_comb begin
    work             = '0;
    work.role        = RolePayload;
    work.mpq         = 16'd3;
    work.feeds_back  = 1'b1;
    work.her.message = 32'd7;
    work.her.flow    = 32'h0000_F10A;
    work.her.address = 32'h1C40_0100;
    work.her.size    = 16'(packet_bytes_i);
    row                         = '0;
    row.handlers[1]             = '{function_q, 32'd64};
    row.watchdog_cycles         = watchdog_q;
    row.handler_memory          = '{32'h1C20_0000, 32'd100};
    row.host                    = '{64'h1_2345_6780, 64'h2_0000_0000};
    scratchpads                 = '0;
    scratchpads[0]              = '{Scratch, 32'h3000};
    scratchpads[1]              = '{32'h1040_0010, 32'd5};
    response                    = '0;
    response.hpu                = '{8'd0, response_hpu_i};
    response.slot               = response_slot_i;
    response.is_refused         = response_refused_i;
    response.host               = 64'h9_8765_4321;
  end

  always_ff @(posedge clk_i) begin
    if (assign_i) begin
      function_q <= function_i;
      watchdog_q <= watchdog_i;
    end
  end

  pspin_hpu #(
    .L1Bytes(65536)
  ) u_hpu (
    .clk_i,
    .rst_ni,
    .id_i             (Id),
    .cfg_i            (cfg),
    .instr_req_o      (instr_req),
    .instr_gnt_i      (1'b1),
    .instr_addr_o     (instr_addr),
    .instr_rvalid_i   (instr_rvalid_q),
    .instr_rdata_i    (instr_rdata),
    .instr_error_i    (instr_error_q),
    .l1_valid_o       (l1_valid),
    .l1_gnt_i         (l1_gnt),
    .l1_o             (l1),
    .l1_rvalid_i      (l1_rvalid),
    .l1_rdata_i       (l1_rdata),
    .pe_valid_o       (pe_valid),
    .pe_ready_i       (!remote_blocks_i),
    .pe_o             (remote),
    .pe_rvalid_i      (pe_rvalid),
    .pe_rdata_i       (pe_rdata),
    .assign_valid_i   (assign_i),
    .assign_place_i   (place_i),
    .assign_task_i    (work),
    .assign_packet_i  ('{32'h1000_4000, packet_bytes_i}),
    .context_i        (row),
    .scratchpads_i    (scratchpads),
    .idle_o,
    .waits_o,
    .done_valid_o,
    .done_ready_i,
    .done_place_o,
    .done_outcome_o   (outcome),
    .command_valid_o,
    .command_ready_i,
    .command_o        (command),
    .response_valid_i (response_i),
    .response_i       (response),
    .orphans_o,
    .transfer_valid_o,
    .transfer_ready_i,
    .transfer_from_o,
    .transfer_to_o,
    .transfer_size_o,
    .transfer_landed_i(landed_i),
    .console_valid_o,
    .console_ready_i,
    .console_char_o,
    .terminate_o
  );

  assign start_o           = u_hpu.u_driver.start_o;
  assign end_o             = u_hpu.u_driver.end_o;
  assign kind_o            = outcome.kind;
  assign cause_o           = outcome.cause;
  assign pc_o              = outcome.pc;
  assign address_o         = outcome.address;
  assign command_kind_o    = command.kind;
  assign command_slot_o    = command.slot;
  assign command_host_o    = command.host;
  assign command_address_o = command.data.address;
  assign command_size_o    = command.data.size;
  assign command_event_o   = command.has_event;
  assign command_user_o    = command.user;
  assign command_direct_o  = command.immediate_size;
  assign remote_asks_o     = pe_valid;

  pspin_sram #(
    .Rows (8192),
    .Bytes(4)
  ) u_program (
    .clk_i,
    .req_i  (instr_req),
    .we_i   (1'b0),
    .row_i  (instr_addr[14:2]),
    .be_i   ('0),
    .wdata_i('0),
    .rdata_o(instr_rdata)
  );

  pspin_l1_bank #(
    .Rows(16384)
  ) u_l1 (
    .clk_i,
    .rst_ni,
    .req_i           (l1_valid && !l1_blocks_i),
    .gnt_o           (l1_ready),
    .we_i            (l1.we),
    .atop_i          (l1.atop),
    .row_i           (l1.address[15:2]),
    .be_i            (l1.be),
    .wdata_i         (l1.wdata),
    .expected_valid_i(l1.expected_valid),
    .expected_i      (l1.expected),
    .rvalid_o        (l1_rvalid),
    .rdata_o         (l1_rdata)
  );

  logic l1_ready;
  assign l1_gnt = l1_ready && !l1_blocks_i;

  // Other memories: an access executes ten cycles after its acceptance, and is answered like one to L1.
  word_request_t       remote_q;
  logic [9:0]          remote_delay_q;
  logic                remote_gnt;

  pspin_l1_bank #(
    .Rows(16384)
  ) u_remote (
    .clk_i,
    .rst_ni,
    .req_i           (remote_delay_q[9]),
    .gnt_o           (remote_gnt),
    .we_i            (remote_q.we),
    .atop_i          (remote_q.atop),
    .row_i           (remote_q.address[15:2]),
    .be_i            (remote_q.be),
    .wdata_i         (remote_q.wdata),
    .expected_valid_i(remote_q.expected_valid),
    .expected_i      (remote_q.expected),
    .rvalid_o        (pe_rvalid),
    .rdata_o         (pe_rdata)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      instr_rvalid_q <= 1'b0;
      remote_delay_q <= '0;
    end else begin
      instr_rvalid_q <= instr_req;
      remote_delay_q <= {remote_delay_q[8:0], pe_valid && !remote_blocks_i};
    end
  end

  always_ff @(posedge clk_i) begin
    instr_error_q <= instr_addr - Program >= 32'h8000;
    if (pe_valid && !remote_blocks_i) remote_q <= remote;
    if (remote_delay_q[9] && !remote_gnt) $fatal(1, "a remote access was asked for while another was in flight");
  end

endmodule
