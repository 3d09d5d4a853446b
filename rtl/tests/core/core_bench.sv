// Cores with memories that answer at once, and the two registers of the HPU driver that the runtime's loop needs. Each core has its
// own memories: the bench is for the core's cycles, and for the speed of its simulation.
module core_bench #(
  parameter int unsigned Cores = 1
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        task_valid_i [Cores],
  input  logic [31:0] function_i   [Cores],
  output logic        starts_o     [Cores],  // the load of the function pointer returns
  output logic        doorbell_o   [Cores]   // the store to the doorbell has reached the driver
);

  for (genvar i = 0; i < Cores; i++) begin : gen_core
    core_bench_hpu u_hpu (
      .clk_i,
      .rst_ni,
      .hart_i      (32'(i)),
      .task_valid_i(task_valid_i[i]),
      .function_i  (function_i[i]),
      .starts_o    (starts_o[i]),
      .doorbell_o  (doorbell_o[i])
    );
  end

endmodule

module core_bench_hpu
  import pspin_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic [31:0] hart_i,
  input  logic        task_valid_i,
  input  logic [31:0] function_i,
  output logic        starts_o,
  output logic        doorbell_o
);

  localparam logic [31:0] Boot    = 32'h1A00_0000;
  localparam logic [31:0] Program = 32'h1D00_0000;
  localparam logic [31:0] Stack   = 32'h1000_0400;
  localparam logic [31:0] Driver  = 32'h1B20_5000;

  logic        instr_req, instr_rvalid_q;
  logic [31:0] instr_addr, instr_rdata;
  logic        data_req, data_gnt, data_rvalid, data_we;
  logic [3:0]  data_be;
  atop_e       data_atop;
  logic [31:0] data_addr, data_wdata, data_rdata;

  pspin_core u_core (
    .clk_i,
    .rst_ni,
    .boot_addr_i   (Boot),
    .mtvec_i       (Boot),
    .hart_id_i     (hart_i),
    .instr_req_o   (instr_req),
    .instr_gnt_i   (1'b1),
    .instr_rvalid_i(instr_rvalid_q),
    .instr_addr_o  (instr_addr),
    .instr_rdata_i (instr_rdata),
    .data_req_o    (data_req),
    .data_gnt_i    (data_gnt),
    .data_rvalid_i (data_rvalid),
    .data_we_o     (data_we),
    .data_be_o     (data_be),
    .data_atop_o   (data_atop),
    .data_addr_o   (data_addr),
    .data_wdata_o  (data_wdata),
    .data_rdata_i  (data_rdata)
  );

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
    .rdata_o(program_rdata)
  );

  logic [4:2]  boot_addr_q;
  logic        boots_q;
  logic [31:0] program_rdata, boot_rdata;

  pspin_boot_rom u_boot_rom (
    .entry_i    (Program),
    .stack_top_i(Stack),
    .cluster_i  ('0),
    .hpu_i      ('0),
    .addr_i     (boot_addr_q),
    .instr_o    (boot_rdata)
  );

  assign instr_rdata = boots_q ? boot_rdata : program_rdata;

  always_ff @(posedge clk_i) begin
    boot_addr_q <= instr_addr[4:2];
    boots_q     <= instr_addr[31:16] == Boot[31:16];
  end

  // Addresses of L1 (0x10…), L2 handler memory (0x1C0…) and the driver (0x1B2…).
  logic is_driver, is_l2, is_l1, busy_q, l1_gnt, l2_gnt, l1_rvalid, l2_rvalid, expected_valid;
  logic [31:0] l1_rdata, l2_rdata, expected;
  assign is_driver = data_addr[31:12] == Driver[31:12];
  assign is_l2     = data_addr[31:24] == 8'h1C;
  assign is_l1     = data_addr[31:24] == 8'h10;

  pspin_reservation u_reservation (
    .clk_i,
    .rst_ni,
    .req_i           (data_req),
    .gnt_i           (data_gnt),
    .atop_i          (data_atop),
    .addr_i          (data_addr),
    .rvalid_i        (data_rvalid),
    .rdata_i         (data_rdata),
    .expected_valid_o(expected_valid),
    .expected_o      (expected)
  );

  // The next access waits for the answer to one that is late, so answers keep the order.
  logic may_ask;
  assign may_ask = !busy_q || data_rvalid;

  pspin_l1_bank #(
    .Rows(16384)
  ) u_l1 (
    .clk_i,
    .rst_ni,
    .req_i           (data_req && is_l1 && may_ask),
    .gnt_o           (l1_gnt),
    .beat_i          (1'b0),
    .we_i            (data_we),
    .atop_i          (data_atop),
    .row_i           (data_addr[15:2]),
    .be_i            (data_be),
    .wdata_i         (data_wdata),
    .expected_valid_i(expected_valid),
    .expected_i      (expected),
    .rvalid_o        (l1_rvalid),
    .rdata_o         (l1_rdata),
    .beat_rdata_o    ()
  );

  pspin_l1_bank #(
    .Rows(16384)
  ) u_l2 (
    .clk_i,
    .rst_ni,
    .req_i           (data_req && is_l2 && may_ask),
    .gnt_o           (l2_gnt),
    .beat_i          (1'b0),
    .we_i            (data_we),
    .atop_i          (data_atop),
    .row_i           (data_addr[15:2]),
    .be_i            (data_be),
    .wdata_i         (data_wdata),
    .expected_valid_i(expected_valid),
    .expected_i      (expected),
    .rvalid_o        (l2_rvalid),
    .rdata_o         (l2_rdata),
    .beat_rdata_o    ()
  );

  // The driver takes an access at once and answers in the next cycle; the load of the function pointer waits for a task.
  logic is_function, is_doorbell, function_q, other_q, driver_rvalid;
  assign is_function   = is_driver && data_addr[11:0] == 12'h000;
  assign is_doorbell   = is_driver && data_addr[11:0] == 12'h050;
  assign driver_rvalid = other_q || (function_q && task_valid_i);
  assign starts_o      = function_q && task_valid_i;

  assign data_gnt    = may_ask && (is_l1 ? l1_gnt : is_l2 ? l2_gnt : 1'b1);
  assign data_rvalid = l1_rvalid || l2_rvalid || driver_rvalid;
  assign data_rdata  = l1_rvalid ? l1_rdata : l2_rvalid ? l2_rdata : function_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      instr_rvalid_q <= 1'b0;
      busy_q         <= 1'b0;
      function_q     <= 1'b0;
      other_q        <= 1'b0;
      doorbell_o     <= 1'b0;
    end else begin
      instr_rvalid_q <= instr_req;
      if (data_req && data_gnt) busy_q <= 1'b1;
      else if (data_rvalid) busy_q <= 1'b0;
      if (data_req && data_gnt && is_function) function_q <= 1'b1;
      else if (task_valid_i) function_q <= 1'b0;
      other_q    <= data_req && data_gnt && !is_l1 && !is_l2 && !is_function;
      doorbell_o <= data_req && data_gnt && is_doorbell;
    end
  end

endmodule
