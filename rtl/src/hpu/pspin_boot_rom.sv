// SPDX-License-Identifier: Apache-2.0
// Instructions of an HPU after reset: they set its stack and its two numbers (sdk/pspin/rt/runtime/src/start.S), and
// jump to the entry: that of the program, or that of its loop after a handler is given up.
module pspin_boot_rom (
  input  logic [31:0] entry_i,
  input  logic [31:0] stack_top_i,
  input  logic [11:0] cluster_i,
  input  logic [11:0] hpu_i,

  input  logic [4:2]  addr_i,
  output logic [31:0] instr_o
);

  localparam logic [4:0] Zero = 5'd0, Sp = 5'd2, T0 = 5'd5, A0 = 5'd10, A1 = 5'd11;

  // Destination, source register and constant of the instruction: lower 12 bits, which `addi` adds with sign, and the
  // matching upper part for `lui`.
  logic [4:0]  rd, rs;
  logic [31:0] value;
  logic [19:0] upper;
  logic        is_lui;

  assign upper = value[31:12] + 20'(value[11]);

  always_comb begin
    {rd, rs} = {Zero, Zero};
    value    = '0;
    is_lui   = 1'b0;
    unique case (addr_i)
      3'd0:    {rd, value, is_lui} = {Sp, stack_top_i, 1'b1};
      3'd1:    {rd, rs, value}     = {Sp, Sp, stack_top_i};
      3'd2:    {rd, value}         = {A0, 32'(cluster_i)};
      3'd3:    {rd, value}         = {A1, 32'(hpu_i)};
      3'd4:    {rd, value, is_lui} = {T0, entry_i, 1'b1};
      3'd5:    {rs, value}         = {T0, entry_i};
      default: ;
    endcase
  end

  always_comb begin
    if (is_lui) instr_o = {upper, rd, 7'b0110111};
    else if (addr_i == 3'd5) instr_o = {value[11:0], rs, 3'b000, rd, 7'b1100111};  // jalr zero, entry(t0)
    else instr_o = {value[11:0], rs, 3'b000, rd, 7'b0010011};
  end

endmodule
