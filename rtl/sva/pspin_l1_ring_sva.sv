// SPDX-License-Identifier: Apache-2.0
// Pieces of the packet buffer never overlap, and only allocated ones are freed.
module pspin_l1_ring_sva #(
  parameter int unsigned Units = 512,
  localparam int unsigned UnitsWidth = $clog2(Units + 1)
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic [UnitsWidth-1:0] size_i,
  input logic                  has_room_o,
  input logic [UnitsWidth-1:0] start_o,
  input logic                  allocate_i,
  input logic                  free_i,
  input logic [UnitsWidth-1:0] freed_start_i,
  input logic [UnitsWidth-1:0] freed_end_i,
  input logic [Units-1:0]      busy_q,
  input logic                  is_full,
  input logic                  is_wrapped,
  input logic                  fits_behind
);

  function automatic logic [Units-1:0] units(logic [UnitsWidth-1:0] from, logic [UnitsWidth-1:0] to);
    return ({Units{1'b1}} << from) & ~({Units{1'b1}} << to);
  endfunction

  Room : assert property (@(posedge clk_i) disable iff (!rst_ni) !allocate_i || has_room_o);
  Apart : assert property (@(posedge clk_i) disable iff (!rst_ni) !allocate_i || (units(start_o, start_o + size_i) & busy_q) == '0);
  Inside : assert property (@(posedge clk_i) disable iff (!rst_ni) !allocate_i || 32'(start_o) + 32'(size_i) <= Units);
  Owned : assert property (@(posedge clk_i) disable iff (!rst_ni) !free_i || (units(freed_start_i, freed_end_i) & ~busy_q) == '0);

  Full : cover property (@(posedge clk_i) disable iff (!rst_ni) is_full);
  Wraps : cover property (@(posedge clk_i) disable iff (!rst_ni) allocate_i && !fits_behind);
  Wrapped : cover property (@(posedge clk_i) disable iff (!rst_ni) allocate_i && is_wrapped);
  Both : cover property (@(posedge clk_i) disable iff (!rst_ni) allocate_i && free_i);
  Empties : cover property (@(posedge clk_i) disable iff (!rst_ni)
    free_i && !allocate_i && (busy_q & ~units(freed_start_i, freed_end_i)) == '0);

endmodule

bind pspin_l1_ring pspin_l1_ring_sva #(
  .Units(Units)
) u_sva (.*);
