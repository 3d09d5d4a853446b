// SPDX-License-Identifier: Apache-2.0
// Invariants of an L2 memory: each group of banks has one user per cycle, and DMA engines read no busy group.
module pspin_l2_sva #(
  parameter int unsigned Groups = 4
) (
  input logic              clk_i,
  input logic              rst_ni,

  input logic [Groups-1:0] b_read,
  input logic [Groups-1:0] busy_o,
  input logic [Groups-1:0] b_write_q,
  input logic [Groups-1:0] modify_q,
  input logic [Groups-1:0] a_write_q,
  input logic [Groups-1:0] a_read_q,
  input logic [Groups-1:0] b_read_q,
  input logic [Groups-1:0] pe_q,
  input logic              pe_valid_i,
  input logic              is_atomic,
  input logic [Groups-1:0] b_next
);

  default clocking @(posedge clk_i);
  endclocking
  default disable iff (!rst_ni);

  NotBusy : assert property ((b_read & busy_o) == '0);

  for (genvar i = 0; i < Groups; i++) begin : g_group
    OneUser : assert property ($onehot0({b_write_q[i], modify_q[i], a_write_q[i], a_read_q[i], b_read_q[i], pe_q[i]}));
  end

  AllPorts : cover property (b_write_q != '0 && a_write_q != '0 && a_read_q != '0 && b_read_q != '0);
  AtomicWaits : cover property (pe_valid_i && is_atomic && b_next != '0);

endmodule

bind pspin_l2 pspin_l2_sva #(
  .Groups(Groups)
) u_sva (.*);
