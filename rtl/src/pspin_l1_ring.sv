// The packet buffer of a cluster (PsPIN III-B2): a ring that is allocated in order and freed in any order. No piece wraps around its
// end; the rest there is skipped. All sizes are in units of the ring.
//
// One number tells how many units are in use, so that a full ring and an empty one cannot be confused.
module pspin_l1_ring #(
  parameter int unsigned Units  = 512,
  parameter int unsigned Pieces = 21,  // that are allocated at once, and the skipped rest
  localparam int unsigned UnitsWidth = $clog2(Units + 1),
  localparam int unsigned PieceWidth = $clog2(Pieces)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // A piece of this size, at least 1, if there is room. It is freed by its number.
  input  logic [UnitsWidth-1:0] size_i,
  output logic                  has_room_o,
  output logic [UnitsWidth-1:0] start_o,
  output logic [PieceWidth-1:0] piece_o,
  input  logic                  allocate_i,

  input  logic                  free_i,
  input  logic [PieceWidth-1:0] freed_i,

  output logic [UnitsWidth-1:0] used_o
);

  localparam logic [UnitsWidth-1:0] All  = UnitsWidth'(Units);
  localparam logic [PieceWidth-1:0] Last = PieceWidth'(Pieces - 1);
  localparam int unsigned           CountWidth = $clog2(Pieces + 1);

  // The pieces in the order of allocation, in a ring of their own.
  logic [UnitsWidth-1:0] start_q [Pieces];
  logic [UnitsWidth-1:0] size_q  [Pieces];
  logic [Pieces-1:0]     free_q;
  logic [PieceWidth-1:0] first_q, next_q;
  logic [CountWidth-1:0] count_q;
  logic [UnitsWidth-1:0] tail_q, used_q;

  // Where a piece would begin: behind the latest one, or at 0 when the rest at the end is too short.
  logic [UnitsWidth-1:0] head, rest;
  logic                  is_empty, is_full, is_wrapped, fits_behind, fits_at_0, skips, has_pieces;

  function automatic logic [PieceWidth-1:0] following(logic [PieceWidth-1:0] piece);
    return piece == Last ? '0 : piece + 1'b1;
  endfunction

  assign is_empty    = used_q == '0;
  assign head        = is_empty ? tail_q : start_q[first_q];
  assign is_full     = !is_empty && tail_q == head;
  assign is_wrapped  = !is_empty && tail_q < head;
  assign rest        = All - tail_q;
  assign fits_behind = size_i <= (is_wrapped ? head - tail_q : rest);
  assign fits_at_0   = !is_wrapped && size_i <= (is_empty ? All : head);
  assign skips       = !is_full && !fits_behind && !is_empty;
  // Skipping takes a piece too.
  assign has_pieces  = count_q + CountWidth'(skips) < CountWidth'(Pieces);
  assign has_room_o  = !is_full && (fits_behind || fits_at_0) && has_pieces;
  assign start_o     = fits_behind ? tail_q : '0;
  assign piece_o     = skips ? following(next_q) : next_q;

  // Pieces that leave at the head: all free ones up to the first that is not.
  logic [Pieces-1:0]     free_d;
  logic [UnitsWidth-1:0] leaving_units;
  logic [CountWidth-1:0] leaving;
  logic [PieceWidth-1:0] first_d;

  always_comb begin
    free_d = free_q;
    if (free_i) free_d[freed_i] = 1'b1;
    leaving_units = '0;
    leaving       = '0;
    first_d       = first_q;
    for (int unsigned i = 0; i < Pieces; i++) begin
      if (leaving == CountWidth'(i) && CountWidth'(i) < count_q && free_d[first_d]) begin
        leaving_units = leaving_units + size_q[first_d];
        leaving       = leaving + 1'b1;
        first_d       = following(first_d);
      end
    end
  end

  logic [UnitsWidth-1:0] end_of_new, used_d;
  logic [CountWidth-1:0] count_d;
  assign end_of_new = start_o + size_i;
  assign used_d     = used_q - leaving_units + (allocate_i ? size_i + (skips ? rest : '0) : '0);
  assign count_d    = count_q - leaving + (allocate_i ? CountWidth'(1) + CountWidth'(skips) : '0);
  assign used_o     = used_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      free_q  <= '0;
      first_q <= '0;
      next_q  <= '0;
      count_q <= '0;
      tail_q  <= '0;
      used_q  <= '0;
    end else begin
      first_q <= first_d;
      count_q <= count_d;
      used_q  <= used_d;
      free_q  <= free_d;
      if (allocate_i) begin
        next_q          <= following(piece_o);
        free_q[piece_o] <= 1'b0;
        if (skips) free_q[next_q] <= 1'b1;
        tail_q <= end_of_new == All ? '0 : end_of_new;
      end else if (used_d == '0) begin
        tail_q <= '0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (allocate_i) begin
      start_q[piece_o] <= start_o;
      size_q[piece_o]  <= size_i;
      if (skips) begin
        start_q[next_q] <= tail_q;
        size_q[next_q]  <= rest;
      end
    end
  end

endmodule
