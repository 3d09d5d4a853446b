// The instructions with which an HPU starts after reset: they give it its stack and its two numbers (sdk/pspin/rt/runtime/src/
// start.S), and jump to the entry, which is that of the program or that of its loop after a handler was given up.
module pspin_boot_rom (
  input  logic [31:0] entry_i,
  input  logic [31:0] stack_top_i,
  input  logic [11:0] cluster_i,
  input  logic [11:0] hpu_i,

  input  logic [4:2]  addr_i,
  output logic [31:0] instr_o
);

  localparam logic [4:0] Zero = 5'd0, Sp = 5'd2, T0 = 5'd5, A0 = 5'd10, A1 = 5'd11;

  // The upper part of a constant whose lower 12 bits an instruction adds with their sign.
  function automatic logic [31:0] lui(logic [4:0] rd, logic [31:11] value);
    return {value[31:12] + 20'(value[11]), rd, 7'b0110111};
  endfunction

  function automatic logic [31:0] addi(logic [4:0] rd, logic [4:0] rs, logic [11:0] value);
    return {value, rs, 3'b000, rd, 7'b0010011};
  endfunction

  always_comb begin
    unique case (addr_i)
      3'd0:    instr_o = lui(Sp, stack_top_i[31:11]);
      3'd1:    instr_o = addi(Sp, Sp, stack_top_i[11:0]);
      3'd2:    instr_o = addi(A0, Zero, cluster_i);
      3'd3:    instr_o = addi(A1, Zero, hpu_i);
      3'd4:    instr_o = lui(T0, entry_i[31:11]);
      3'd5:    instr_o = {entry_i[11:0], T0, 3'b000, Zero, 7'b1100111};  // jalr zero, entry(t0)
      default: instr_o = addi(Zero, Zero, '0);
    endcase
  end

endmodule
