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

  // The numbers of which bit `place` is set.
  function automatic logic [Size-1:0] with_bit(int unsigned place);
    for (int unsigned i = 0; i < Size; i++) with_bit[i] = 1'(i >> place);
  endfunction

  // The number of the lowest of a few bits, or 0.
  function automatic logic [Inner-1:0] first_of(logic [Size-1:0] bits);
    logic [Size-1:0] reached;  // a bit at this place or below it is set
    reached = bits;
    for (int unsigned k = 0; k < Inner; k++) reached |= reached << (2 ** k);
    reached &= ~(reached << 1);
    for (int unsigned k = 0; k < Inner; k++) first_of[k] = |(reached & with_bit(k));
  endfunction

  logic [Groups*Size-1:0]       bits;
  logic [Size-1:0]              any;
  logic [Groups-1:0][Inner-1:0] inner;
  logic [Inner-1:0]             group;

  assign bits    = (Groups * Size)'(bits_i);
  assign valid_o = |any;
  assign group   = first_of(any);
  assign index_o = IndexWidth'({group, inner[group]});

  always_comb begin
    any = '0;
    for (int unsigned g = 0; g < Groups; g++) begin
      any[g]   = |bits[g*Size+:Size];
      inner[g] = first_of(bits[g*Size+:Size]);
    end
  end

endmodule
