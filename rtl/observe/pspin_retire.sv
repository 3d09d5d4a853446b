// What the core completes, for comparison with the instruction-set simulator: bound into the core, simulation only. An instruction
// is told when it leaves the decode stage, which it does in program order and never in vain; registers are told when they are
// written, in order for each of the two ports: results of the execute stage, and loads.
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
  input logic [31:0] load_value_i
);

  import "DPI-C" function void pspin_retired(input int hart, input int pc);
  import "DPI-C" function void pspin_written(input int hart, input int port, input int index, input int value);

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      if (load_we_i) pspin_written(hart_i, 1, 32'(load_register_i), load_value_i);
      if (alu_we_i) pspin_written(hart_i, 0, 32'(alu_register_i), alu_value_i);
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
  .alu_we_i       (regfile_alu_we_fw_power),
  .alu_register_i (regfile_alu_waddr_fw),
  .alu_value_i    (regfile_alu_wdata_fw),
  .load_we_i      (regfile_we_wb_power),
  .load_register_i(regfile_waddr_fw_wb_o),
  .load_value_i   (regfile_wdata)
);
