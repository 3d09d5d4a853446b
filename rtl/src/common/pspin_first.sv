// SPDX-License-Identifier: Apache-2.0
// The number of the lowest bit that is set. Groups of bits find theirs at the same time as the first group with a bit is found, so
// that the depth grows with the logarithm of the width.
module pspin_first #(
  parameter int unsigned N = 8,
  localparam int unsigned IndexWidth = N > 1 ? $clog2(N) : 1
) (
  input  logic [N-1:0]          bits_i,
  output logic                  valid_o,  // there is one
  output logic [IndexWidth-1:0] index_o   // 0 if there is none
);

  localparam int unsigned Inner  = IndexWidth > 4 ? (IndexWidth + 1) / 2 : IndexWidth;  // bits of a number within a group
  localparam int unsigned Size   = 2 ** Inner;
  localparam int unsigned Groups = (N + Size - 1) / Size;

  typedef logic [Inner-1:0][Size-1:0] masks_t;

  // For each bit of a number, the numbers of which it is set.
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

  // The lowest of the bits of each group, and of the groups that have one. There is no function of a few bits here, because a simulator
  // would run its loops instead of evaluating an expression.
  for (genvar g = 0; g <= Groups; g++) begin : gen_few
    logic [Size-1:0]  few, reached, lowest;  // reached: a bit at this place or below it is set
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
