// SPDX-License-Identifier: Apache-2.0
// Finds message queues that may be idle for long (PsPIN III-B3): a tree with a bit at each node, which points away from
// the half that was accessed last. The path from the root to the victim avoids halves without active queues. A compared
// victim counts as accessed, so that each active queue has its turn.
module pspin_mpq_lru #(
  parameter int unsigned Queues = 8,  // a power of two
  localparam int unsigned Levels = $clog2(Queues)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              touch_i,       // a request arrived for this queue
  input  logic [Levels-1:0] touched_i,

  input  logic [Queues-1:0] active_i,      // queues with a message
  input  logic              compare_i,     // the victim is compared in this cycle
  output logic              victim_valid_o,
  output logic [Levels-1:0] victim_o
);

  // Node 1 is the root; the children of node n are 2n and 2n + 1, and queue q is node Queues + q.
  logic [Queues-1:1]   upper_q, upper_d;   // the victim is in the upper half
  logic [2*Queues-1:1] active;

  // For each node: set if an active queue is below it.
  function automatic logic [2*Queues-1:1] nodes(logic [Queues-1:0] queues);
    nodes[2*Queues-1:Queues] = queues;
    for (int n = int'(Queues) - 1; n >= 1; n--) nodes[n] = nodes[2*n] | nodes[2*n+1];
  endfunction

  assign active         = nodes(active_i);
  assign victim_valid_o = active[1];

  always_comb begin
    victim_o = '0;
    for (int level = int'(Levels) - 1, node = 1; level >= 0; level--) begin
      victim_o[level] = upper_q[node] ? active[2*node+1] : !active[2*node];
      node            = 2 * node + int'(victim_o[level]);
    end
  end

  // Points all nodes on the path to a queue away from it.
  function automatic logic [Queues-1:1] away(logic [Queues-1:1] upper, logic [Levels-1:0] queue);
    for (int level = int'(Levels) - 1, node = 1; level >= 0; level--) begin
      upper[node] = !queue[level];
      node        = 2 * node + int'(queue[level]);
    end
    return upper;
  endfunction

  always_comb begin
    upper_d = upper_q;
    if (compare_i && victim_valid_o) upper_d = away(upper_d, victim_o);
    if (touch_i) upper_d = away(upper_d, touched_i);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) upper_q <= '0;
    else upper_q <= upper_d;
  end

endmodule
