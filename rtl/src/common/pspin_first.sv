// SPDX-License-Identifier: Apache-2.0
// Index of the lowest set bit. Groups of bits search in parallel with the search for the first non-empty group, so the
// depth grows with the logarithm of the width.
module pspin_first #(
  parameter int unsigned N = 8,
  localparam int unsigned IndexWidth = N > 1 ? $clog2(N) : 1
) (
  input  logic [N-1:0]          bits_i,
  output logic                  valid_o,  // a bit is set
  output logic [IndexWidth-1:0] index_o   // 0 if no bit is set
);

  localparam int unsigned Inner  = IndexWidth > 4 ? (IndexWidth + 1) / 2 : IndexWidth;  // bits of a number in a group
  localparam int unsigned Size   = 2 ** Inner;
  localparam int unsigned Groups = (N + Size - 1) / Size;

  typedef logic [Inner-1:0][Size-1:0] masks_t;

  // For each bit of an index, the indices in which it is set.
  function automatic masks_t masks();
    for (int unsigned k = 0; k < Inner; k++) begin
      for (int unsigned i = 0; i < Size; i++) masks[k][i] = 1'(i >> k);
    end
  endfunction

  localparam masks_t WithBit = masks();

  logic [Groups*Size-1:0]       bits;
  logic [Size-1:0]              any;
  logic [Groups-1:0][Inner-1:0] inner;
  logic [Inner-1:0]             group;

  assign bits    = (Groups * Size)'(bits_i);
  assign valid_o = |any;
  assign index_o = IndexWidth'({group, inner[group]});

  // The lowest set bit of each group, and of the non-empty groups. A function would be slow here: a simulator runs its
  // loops instead of evaluating an expression.
  for (genvar g = 0; g <= Groups; g++) begin : gen_few
    logic [Size-1:0]  few, reached, lowest;  // reached: a bit at or below this one is set
    logic [Inner-1:0] number;

    always_comb begin
      reached = few;
      for (int unsigned k = 0; k < Inner; k++) reached |= reached << (2 ** k);
    end

    assign lowest = reached & ~(reached << 1);

    for (genvar k = 0; k < Inner; k++) begin : gen_bit
      assign number[k] = |(lowest & WithBit[k]);
    end

    if (g < Groups) begin : gen_group
      assign few      = bits[g*Size+:Size];
      assign any[g]   = |few;
      assign inner[g] = number;
    end else begin : gen_groups
      assign few   = any;
      assign group = number;
    end
  end

  for (genvar g = Groups; g < Size; g++) begin : gen_none
    assign any[g] = 1'b0;
  end

endmodule
