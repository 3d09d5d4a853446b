// SPDX-License-Identifier: Apache-2.0
// Completions of the core, for comparison with the instruction-set simulator: bound into the core, simulation only. An
// instruction is reported when it leaves the decode stage, in program order, including one with a denied access and one
// in execution at a reset of the core. Registers are reported when written, in order for each of the two ports: results
// of the execute stage when they leave it (those of control registers in their first cycle there), and loads. Accesses
// are reported when granted, in order, one per word.
module pspin_retire (
  input logic        clk_i,
  input logic        rst_ni,
  input logic [31:0] hart_i,
  input logic        retires_i,
  input logic [31:0] pc_i,
  input logic        alu_we_i,
  input logic [5:0]  alu_register_i,
  input logic [31:0] alu_value_i,
  input logic        load_we_i,
  input logic [5:0]  load_register_i,
  input logic [31:0] load_value_i,
  input logic        granted_i,
  input logic [31:0] address_i,
  input logic        we_i,
  input logic [3:0]  be_i,
  input logic [5:0]  atop_i,
  input logic        second_i,
  input logic [31:0] wdata_i
);

  import "DPI-C" function void pspin_retired(input int hart, input int pc);
  import "DPI-C" function void pspin_written(input int hart, input int port, input int index, input int value);
  // Bits 3 to 0 are the bytes of the word, bit 4 is set for a store, bit 5 for the second word of an access; above is data_atop_o.
  import "DPI-C" function void pspin_accessed(input int hart, input int address, input int what, input int value);

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      if (load_we_i) pspin_written(hart_i, 1, 32'(load_register_i), load_value_i);
      if (alu_we_i) pspin_written(hart_i, 0, 32'(alu_register_i), alu_value_i);
      if (granted_i) pspin_accessed(hart_i, address_i, 32'({atop_i, second_i, we_i, be_i}), wdata_i);
      if (retires_i) pspin_retired(hart_i, pc_i);
    end
  end

endmodule

bind cv32e40p_core pspin_retire u_retire (
  .clk_i          (clk_i),
  .rst_ni         (rst_ni),
  .hart_i         (hart_id_i),
  .retires_i      (id_stage_i.minstret),
  .pc_i           (pc_id),
  .alu_we_i       (regfile_alu_we_fw_power && (ex_valid || csr_access_ex)),
  .alu_register_i (regfile_alu_waddr_fw),
  .alu_value_i    (regfile_alu_wdata_fw),
  .load_we_i      (regfile_we_wb_power),
  .load_register_i(regfile_waddr_fw_wb_o),
  .load_value_i   (regfile_wdata),
  .granted_i      (data_req_o && data_gnt_i),
  .address_i      (data_addr_o),
  .we_i           (data_we_o),
  .be_i           (data_be_o),
  .atop_i         (data_atop_o),
  .second_i       (data_second_o),
  .wdata_i        (data_wdata_o)
);
