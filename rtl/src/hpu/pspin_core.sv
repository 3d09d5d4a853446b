// SPDX-License-Identifier: Apache-2.0
// The core of an HPU: CV32E40P with CORE-V extensions and RV32A, without floating point, interrupts and debug.
module pspin_core
  import pspin_pkg::*;
#(
  parameter bit CoreV = 1'b1
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic [31:0] boot_addr_i,
  input  logic [31:0] mtvec_i,
  input  logic [31:0] hart_id_i,
  input  logic [63:0] cycles_i,

  // To the instruction cache of the cluster (OBI).
  output logic        instr_req_o,
  input  logic        instr_gnt_i,
  input  logic        instr_rvalid_i,
  output logic [31:0] instr_addr_o,
  input  logic [31:0] instr_rdata_i,

  // To the protection of the HPU (OBI, with the operation of atomic accesses).
  output logic        data_req_o,
  input  logic        data_gnt_i,
  input  logic        data_rvalid_i,
  output logic        data_we_o,
  output logic [3:0]  data_be_o,
  output atop_e       data_atop_o,
  output logic [31:0] data_addr_o,
  output logic [31:0] data_wdata_o,
  input  logic [31:0] data_rdata_i,
  output logic [2:0]  data_size_o,    // bytes of the whole access, which may cross into a second word
  output logic        data_second_o,  // this is the part in the second word

  // To the HPU: the instruction in the execute stage, or the latest one there; and an instruction that traps before it.
  output logic [31:0] pc_ex_o,
  output logic        traps_o,
  output logic [31:0] trap_pc_o,
  output cause_e      trap_cause_o,
  output logic        trap_is_late_o  // a cycle later than for others
);

  // Causes of exceptions (RISC-V Priv. 3.1.15). All others are environment calls, which are not supported.
  localparam logic [5:0] Illegal    = 6'd2;
  localparam logic [5:0] Breakpoint = 6'd3;

  logic [5:0]  atop, cause;
  logic [1:0]  data_type;
  logic        retires, csr_ex;
  logic [31:0] pc_id, pc_last_q, pc_ex_q;

  assign data_atop_o  = atop_e'(atop);
  assign data_size_o  = data_type == 2'd0 ? 3'd4 : data_type == 2'd1 ? 3'd2 : 3'd1;
  assign pc_ex_o      = retires ? pc_last_q : pc_ex_q;
  assign trap_pc_o    = pc_id;
  assign trap_cause_o = cause == Breakpoint ? CauseBreakpoint : CauseIllegal;

  // The controller waits until the instruction leaves the execute stage. An illegal one leaves without a result, which
  // takes a cycle more; one for a missing control register has a result.
  assign trap_is_late_o = cause == Illegal && !csr_ex;

  always_ff @(posedge clk_i) begin
    pc_last_q <= pc_id;
    pc_ex_q   <= pc_ex_o;
  end

  cv32e40p_core #(
    .COREV_PULP      (CoreV),
    .COREV_CLUSTER   (0),
    .FPU             (0),
    .FPU_ADDMUL_LAT  (0),
    .FPU_OTHERS_LAT  (0),
    .ZFINX           (0),
    .NUM_MHPMCOUNTERS(0)
  ) u_core (
    .clk_i,
    .rst_ni,
    .pulp_clock_en_i    (1'b1),
    .scan_cg_en_i       (1'b0),
    .boot_addr_i,
    .mtvec_addr_i       (mtvec_i),
    .dm_halt_addr_i     ('0),
    .hart_id_i,
    .cycles_i,
    .dm_exception_addr_i('0),
    .instr_req_o,
    .instr_gnt_i,
    .instr_rvalid_i,
    .instr_addr_o,
    .instr_rdata_i,
    .data_req_o,
    .data_gnt_i,
    .data_rvalid_i,
    .data_we_o,
    .data_be_o,
    .data_addr_o,
    .data_wdata_o,
    .data_atop_o        (atop),
    .data_type_o        (data_type),
    .data_second_o,
    .data_rdata_i,
    .apu_busy_o         (),
    .apu_req_o          (),
    .apu_gnt_i          (1'b0),
    .apu_operands_o     (),
    .apu_op_o           (),
    .apu_flags_o        (),
    .apu_rvalid_i       (1'b0),
    .apu_result_i       ('0),
    .apu_flags_i        ('0),
    .irq_i              ('0),
    .irq_ack_o          (),
    .irq_id_o           (),
    .debug_req_i        (1'b0),
    .debug_havereset_o  (),
    .debug_running_o    (),
    .debug_halted_o     (),
    .fetch_enable_i     (1'b1),
    .core_sleep_o       (),
    .retires_o          (retires),
    .pc_id_o            (pc_id),
    .traps_o,
    .cause_o            (cause),
    .csr_ex_o           (csr_ex)
  );

endmodule
