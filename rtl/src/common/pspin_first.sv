// The number of the lowest bit that is set. The carry of a subtraction finds it, so that its depth grows with the logarithm of the
// width.
module pspin_first #(
  parameter int unsigned N = 8,
  localparam int unsigned IndexWidth = N > 1 ? $clog2(N) : 1
) (
  input  logic [N-1:0]          bits_i,
  output logic                  valid_o,  // there is one
  output logic [IndexWidth-1:0] index_o   // 0 if there is none
);

  logic [N-1:0] lowest;

  // The numbers of which bit `place` is set.
  function automatic logic [N-1:0] with_bit(int unsigned place);
    for (int unsigned i = 0; i < N; i++) with_bit[i] = 1'(i >> place);
  endfunction

  assign lowest  = bits_i & (~bits_i + 1'b1);
  assign valid_o = |bits_i;

  for (genvar i = 0; i < IndexWidth; i++) begin : g_bit
    localparam logic [N-1:0] Mask = with_bit(i);
    assign index_o[i] = |(lowest & Mask);
  end

endmodule
