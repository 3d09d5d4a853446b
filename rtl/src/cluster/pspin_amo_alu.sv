// SPDX-License-Identifier: Apache-2.0
// Result of an atomic operation, from the old word and the operand.
module pspin_amo_alu
  import pspin_pkg::*;
(
  input  atop_e       atop_i,
  input  logic [31:0] old_i,
  input  logic [31:0] operand_i,
  output logic [31:0] new_o
);

  logic is_signed, is_less;

  assign is_signed = atop_i inside {AtopMin, AtopMax};
  assign is_less   = $signed({is_signed & old_i[31], old_i}) < $signed({is_signed & operand_i[31], operand_i});

  always_comb begin
    unique case (atop_i)
      AtopAdd:           new_o = old_i + operand_i;
      AtopXor:           new_o = old_i ^ operand_i;
      AtopOr:            new_o = old_i | operand_i;
      AtopAnd:           new_o = old_i & operand_i;
      AtopMin, AtopMinu: new_o = is_less ? old_i : operand_i;
      AtopMax, AtopMaxu: new_o = is_less ? operand_i : old_i;
      AtopLr:            new_o = old_i;
      default:           new_o = operand_i;  // swap and store-conditional
    endcase
  end

endmodule
