// SPDX-License-Identifier: Apache-2.0
// Accesses that protection must never allow, in terms of the ends of ranges: bytes outside all windows, writes to code,
// and ranges that wrap around the address space.
module pspin_protect_sva
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters = 4
) (
  input logic [ClusterWidth-1:0] cluster_i,
  input windows_t                windows_i,
  input range_t [Clusters-1:0]   scratchpads_i,
  input range_t                  range_i,
  input logic                    writes_i,
  input logic                    allowed_o,
  input logic                    is_own_l1_o,
  input logic [31:0]             common_o
);

  logic in_window, in_code;
  logic [Clusters-1:0] in_scratchpad;

  function automatic logic holds(range_t window, logic [31:0] address, logic [31:0] size);
    return window.size != '0 && address >= window.address
        && 34'(address) + 34'(size) <= 34'(window.address) + 34'(window.size);
  endfunction

  always_comb begin
    in_window = holds(windows_i.own_stack, common_o, range_i.size) || holds(windows_i.static_data, common_o, range_i.size)
             || holds(windows_i.packet, common_o, range_i.size) || holds(windows_i.l2_packet, common_o, range_i.size)
             || holds(windows_i.handler_memory, common_o, range_i.size);
    in_code   = holds(windows_i.code, common_o, range_i.size);
    for (int unsigned i = 0; i < Clusters; i++) in_scratchpad[i] = holds(scratchpads_i[i], common_o, range_i.size);
    InWindow : assert (!allowed_o || in_window || in_code || |in_scratchpad);
    CodeStays : assert (!allowed_o || !writes_i || in_window || |in_scratchpad);
    NoWrap : assert (!allowed_o || 33'(common_o) + 33'(range_i.size) <= 33'h1_0000_0000);
    OwnL1 : assert (!is_own_l1_o || (place_of(common_o) == PlaceL1 && cluster_of(common_o) == cluster_i));
  end

endmodule

bind pspin_protect pspin_protect_sva #(
  .Clusters(Clusters)
) u_sva (.*);
