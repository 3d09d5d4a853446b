// SPDX-License-Identifier: Apache-2.0
// Pieces of the packet buffer never overlap, and a piece is stable until it is freed. An arbitrary piece is watched
// among others.
module prove_l1_ring #(
  parameter int unsigned Units = 6,
  localparam int unsigned UnitsWidth = $clog2(Units + 1)
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic [UnitsWidth-1:0] size_i,
  input logic                  allocate_i,
  input logic                  watch_i,
  input logic                  free_i,
  input logic [UnitsWidth-1:0] freed_start_i,
  input logic [UnitsWidth-1:0] freed_end_i
);

  logic [UnitsWidth-1:0] start, used, start_q, size_q;
  logic                  has_room, allocates, live_q = 1'b0;
  logic                  watches_q;

  assign allocates = allocate_i && has_room;

  pspin_l1_ring #(
    .Units(Units)
  ) u_ring (
    .clk_i,
    .rst_ni,
    .size_i,
    .has_room_o(has_room),
    .start_o   (start),
    .allocate_i(allocates),
    .free_i,
    .freed_start_i,
    .freed_end_i,
    .used_o    (used)
  );

  logic is_watched;  // freed piece
  assign is_watched = watches_q && freed_start_i == start_q && freed_end_i == start_q + size_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) watches_q <= 1'b0;
    else if (allocates && watch_i && !watches_q) watches_q <= 1'b1;
    else if (free_i && is_watched) watches_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    live_q <= 1'b1;
    if (allocates && watch_i && !watches_q) begin
      start_q <= start;
      size_q  <= size_i;
    end
  end

  // Units of two pieces.
  logic [Units-1:0] freed, watched, allocated;
  always_comb begin
    for (int unsigned i = 0; i < Units; i++) begin
      freed[i]     = i >= 32'(freed_start_i) && i < 32'(freed_end_i);
      watched[i]   = i >= 32'(start_q) && i < 32'(start_q) + 32'(size_q);
      allocated[i] = i >= 32'(start) && i < 32'(start) + 32'(size_i);
    end
  end

  // Environment: a freed piece was allocated, and is the watched piece or disjoint from it.
  always_comb begin
    if (live_q) assume (rst_ni);
    assume (!allocate_i || (size_i != '0 && 32'(size_i) <= Units));
    assume (!free_i || (freed_start_i <= freed_end_i && 32'(freed_end_i) <= Units));
    assume (!free_i || (freed & ~u_ring.busy_q) == '0);
    assume (!free_i || is_watched || !watches_q || (freed & watched) == '0);
  end

  // No unit between tail and head belongs to a piece, and the head is the first unit that does; this makes the
  // properties inductive.
  logic [Units-1:0] outside;
  always_comb begin
    for (int unsigned i = 0; i < Units; i++) begin
      outside[i] = u_ring.tail_q > u_ring.head_q ? i < 32'(u_ring.head_q) || i >= 32'(u_ring.tail_q)
                                                 : i >= 32'(u_ring.tail_q) && i < 32'(u_ring.head_q);
    end
  end

  always_comb begin
    if (rst_ni) begin
      assert (32'(u_ring.head_q) < Units && 32'(u_ring.tail_q) < Units);
      if (u_ring.busy_q == '0) assert (u_ring.head_q == '0 && u_ring.tail_q == '0);
      else assert (u_ring.busy_q[u_ring.head_q] && (u_ring.busy_q & outside) == '0);
    end
    if (rst_ni && watches_q) begin
      assert ((watched & ~u_ring.busy_q) == '0);
      assert (32'(start_q) + 32'(size_q) <= Units);
      if (allocates) assert ((allocated & watched) == '0);
      if (allocates) assert (32'(used) + 32'(size_i) <= Units);
    end
  end

endmodule
