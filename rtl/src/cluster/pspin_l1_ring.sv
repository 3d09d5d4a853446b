// SPDX-License-Identifier: Apache-2.0
// Packet buffer of a cluster (PsPIN III-B2): a ring that is allocated in order and freed in any order. No piece wraps
// around its end; the remainder there is skipped. All sizes are in units of the ring.
//
// A busy bit for each unit distinguishes a full ring from an empty one, and lets the head pass all freed pieces at
// once.
module pspin_l1_ring #(
  parameter int unsigned Units = 512,
  localparam int unsigned UnitsWidth = $clog2(Units + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // Allocation of a piece of this size, at least 1, if there is room.
  input  logic [UnitsWidth-1:0] size_i,
  output logic                  has_room_o,
  output logic [UnitsWidth-1:0] start_o,
  input  logic                  allocate_i,

  // Release of a piece. Its room is available in the next cycle.
  input  logic                  free_i,
  input  logic [UnitsWidth-1:0] freed_start_i,
  input  logic [UnitsWidth-1:0] freed_end_i,   // unit after the piece

  output logic [UnitsWidth-1:0] used_o         // including the skipped remainder
);

  localparam logic [UnitsWidth-1:0] All = UnitsWidth'(Units);

  logic [Units-1:0]      busy_q, busy_d;
  logic [UnitsWidth-1:0] head_q, head_d, tail_q, tail_d, end_of_new;
  logic                  is_empty, is_full, is_wrapped, fits_behind, fits_at_0;

  // Start of a new piece: after the latest one, or 0 if the remainder at the end is too short.
  assign is_empty    = busy_q == '0;
  assign is_full     = !is_empty && tail_q == head_q;
  assign is_wrapped  = !is_empty && tail_q < head_q;
  assign fits_behind = size_i <= (is_wrapped ? head_q - tail_q : All - tail_q);
  assign fits_at_0   = !is_wrapped && size_i <= (is_empty ? All : head_q);
  assign has_room_o  = !is_full && (fits_behind || fits_at_0);
  assign start_o     = fits_behind ? tail_q : '0;
  assign end_of_new  = start_o + size_i;

  // Units of a range, the end excluded.
  function automatic logic [Units-1:0] units(logic [UnitsWidth-1:0] from, logic [UnitsWidth-1:0] to);
    return ({Units{1'b1}} << from) & ~({Units{1'b1}} << to);
  endfunction

  // The remaining busy units belong to older pieces: the head is the first of them from the old head on, with
  // wrap-around.
  logic [Units-1:0]         left;
  logic [$clog2(Units)-1:0] first_behind, first;
  logic                     any_behind, any_left;

  assign left   = busy_q & ~(free_i ? units(freed_start_i, freed_end_i) : '0);
  assign busy_d = left | (allocate_i ? units(start_o, end_of_new) : '0);

  pspin_first #(
    .N(Units)
  ) u_behind (
    .bits_i (left & ({Units{1'b1}} << head_q)),
    .valid_o(any_behind),
    .index_o(first_behind)
  );

  pspin_first #(
    .N(Units)
  ) u_first (
    .bits_i (left),
    .valid_o(any_left),
    .index_o(first)
  );

  always_comb begin
    head_d = '0;
    tail_d = '0;
    if (any_left) head_d = UnitsWidth'(any_behind ? first_behind : first);
    else if (allocate_i) head_d = start_o;
    if (allocate_i) tail_d = end_of_new == All ? '0 : end_of_new;
    else if (any_left) tail_d = tail_q;
  end

  always_comb begin
    if (is_empty) used_o = '0;
    else if (tail_q > head_q) used_o = tail_q - head_q;
    else used_o = All - head_q + tail_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q <= '0;
      head_q <= '0;
      tail_q <= '0;
    end else begin
      busy_q <= busy_d;
      head_q <= head_d;
      tail_q <= tail_d;
    end
  end

endmodule
