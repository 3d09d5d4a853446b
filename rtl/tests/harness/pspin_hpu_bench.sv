// SPDX-License-Identifier: Apache-2.0
// One HPU with memories that respond at once, and a task for it: the harness compares its instructions with those of
// the instruction-set simulator.
module pspin_hpu_bench
  import pspin_pkg::*;
#(
  parameter int unsigned L1Bytes      = 64 << 10,
  parameter int unsigned HandlerBytes = 64 << 10,
  parameter int unsigned ProgramBytes = 32 << 10
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  // Registers of the unit.
  input  logic        enable_i,
  input  logic [31:0] entry_i,
  input  logic [31:0] again_i,
  input  logic [31:0] code_size_i,
  input  logic [31:0] data_size_i,

  // A task, while idle_o is set.
  input  logic        assign_valid_i,
  input  logic [31:0] function_i,
  input  logic [31:0] packet_i,      // address in L1
  input  logic [31:0] packet_size_i,
  input  logic [31:0] watchdog_i,
  output logic        idle_o,

  // End of the task.
  output logic        done_valid_o,
  output logic [2:0]  done_kind_o,
  output logic [3:0]  done_cause_o,
  output logic [31:0] done_pc_o,

  // Console output.
  output logic        console_valid_o,
  output logic [7:0]  console_char_o
);

  localparam logic [31:0] L1Base      = 32'h1000_0000;
  localparam logic [31:0] HandlerBase = 32'h1C00_0000;
  localparam logic [31:0] ProgramBase = 32'h1D00_0000;

  cfg_t               cfg;
  task_t              assigned;
  execution_context_t execution_context_q;
  outcome_t           outcome;
  word_request_t      l1, pe;
  logic               instr_req, instr_rvalid_q, l1_valid, l1_gnt, l1_rvalid, pe_valid, pe_ready, pe_rvalid;
  logic [31:0]        instr_addr, instr_rdata, l1_rdata, pe_rdata;

  always_comb begin
    cfg = '0;
    cfg.enable      = enable_i;
    cfg.entry       = entry_i;
    cfg.again       = again_i;
    cfg.code        = '{ProgramBase, code_size_i};
    cfg.static_data = '{HandlerBase, data_size_i};

    assigned = '0;
    assigned.role       = RolePayload;
    assigned.feeds_back = 1'b1;
  end

  // The row of the context arrives a cycle after the task.
  always_ff @(posedge clk_i) begin
    if (assign_valid_i) begin
      execution_context_q <= '0;
      execution_context_q.watchdog_cycles <= watchdog_i;
      execution_context_q.handlers <= {3{function_i, 32'd4096}};
    end
  end

  pspin_hpu #(
    .Clusters    (1),
    .Tasks       (4),
    .StackBytes  (1024),
    .L1Bytes     (L1Bytes),
    .HandlerBytes(HandlerBytes),
    .PacketBytes (64 << 10),
    .ProgramBytes(ProgramBytes)
  ) u_hpu (
    .clk_i,
    .rst_ni,
    .id_i             ('0),
    .cfg_i            (cfg),
    .instr_req_o      (instr_req),
    .instr_gnt_i      (1'b1),
    .instr_addr_o     (instr_addr),
    .instr_rvalid_i   (instr_rvalid_q),
    .instr_rdata_i    (instr_rdata),
    .instr_error_i    (1'b0),
    .l1_valid_o       (l1_valid),
    .l1_gnt_i         (l1_gnt),
    .l1_o             (l1),
    .l1_rvalid_i      (l1_rvalid),
    .l1_rdata_i       (l1_rdata),
    .pe_valid_o       (pe_valid),
    .pe_ready_i       (pe_ready),
    .pe_o             (pe),
    .pe_rvalid_i      (pe_rvalid),
    .pe_rdata_i       (pe_rdata),
    .assign_valid_i,
    .assign_place_i   ('0),
    .assign_task_i    (assigned),
    .assign_packet_i  ('{packet_i, packet_size_i}),
    .context_i        (execution_context_q),
    .scratchpads_i    ('{'{L1Base + 32'h4000, 32'h8000}}),
    .idle_o,
    .waits_o          (),
    .done_valid_o,
    .done_ready_i     (1'b1),
    .done_place_o     (),
    .done_outcome_o   (outcome),
    .command_valid_o  (),
    .command_ready_i  (1'b0),
    .command_o        (),
    .response_valid_i (1'b0),
    .response_i       ('0),
    .orphans_o        (),
    .transfer_valid_o (),
    .transfer_ready_i (1'b0),
    .transfer_from_o  (),
    .transfer_to_o    (),
    .transfer_size_o  (),
    .transfer_landed_i(1'b0),
    .console_valid_o,
    .console_ready_i  (1'b1),
    .console_char_o,
    .terminate_o      ()
  );

  assign done_kind_o  = outcome.kind;
  assign done_cause_o = outcome.cause;
  assign done_pc_o    = outcome.pc;

  pspin_sram #(
    .Rows (ProgramBytes / 4),
    .Bytes(4)
  ) u_program (
    .clk_i,
    .req_i  (instr_req),
    .we_i   (1'b0),
    .row_i  (instr_addr[2+:$clog2(ProgramBytes / 4)]),
    .be_i   ('0),
    .wdata_i('0),
    .rdata_o(instr_rdata)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) instr_rvalid_q <= 1'b0;
    else instr_rvalid_q <= instr_req;
  end

  pspin_l1_bank #(
    .Rows(L1Bytes / 4)
  ) u_l1 (
    .clk_i,
    .rst_ni,
    .req_i           (l1_valid),
    .gnt_o           (l1_gnt),
    .we_i            (l1.we),
    .atop_i          (l1.atop),
    .row_i           (l1.address[2+:$clog2(L1Bytes / 4)]),
    .be_i            (l1.be),
    .wdata_i         (l1.wdata),
    .expected_valid_i(l1.expected_valid),
    .expected_i      (l1.expected),
    .rvalid_o        (l1_rvalid),
    .rdata_o         (l1_rdata)
  );

  pspin_l1_bank #(
    .Rows(HandlerBytes / 4)
  ) u_handler_memory (
    .clk_i,
    .rst_ni,
    .req_i           (pe_valid),
    .gnt_o           (pe_ready),
    .we_i            (pe.we),
    .atop_i          (pe.atop),
    .row_i           (pe.address[2+:$clog2(HandlerBytes / 4)]),
    .be_i            (pe.be),
    .wdata_i         (pe.wdata),
    .expected_valid_i(pe.expected_valid),
    .expected_i      (pe.expected),
    .rvalid_o        (pe_rvalid),
    .rdata_o         (pe_rdata)
  );

endmodule
