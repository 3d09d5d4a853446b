// SPDX-License-Identifier: Apache-2.0
// A line is in the instruction cache at most once, and requested at most once.
module pspin_icache_sva
  import pspin_pkg::*;
#(
  parameter int unsigned Ports     = 8,
  parameter int unsigned Ways      = 4,
  parameter int unsigned Sets      = 32,
  parameter int unsigned LineWidth = 10
) (
  input logic                 clk_i,
  input logic                 rst_ni,
  input logic                 flush_i,
  input logic [Ports-1:0]     hits,
  input logic [Ports-1:0]     misses,
  input logic [Ports-1:0]     known,
  input logic [Ports-1:0]     is_code,
  input logic [Ports-1:0]     req_i,
  input logic [Ports-1:0]     busy_q,
  input logic [Ways-1:0]      valid_q  [Sets],
  input logic [LineWidth-1:0] lines_q  [Sets][Ways],
  input logic [LineWidth-1:0] missed_q [Ports],
  input logic                 refill_valid_o,
  input logic                 refill_ready_i,
  input logic                 refill_rvalid_i,
  input logic                 miss_valid_o,
  input logic                 has_miss,
  input logic                 has_way,
  input logic                 ends_fill
);

  logic is_double, is_full;
  always_comb begin
    is_double = 1'b0;
    is_full   = 1'b0;
    for (int unsigned s = 0; s < Sets; s++) begin
      is_full = is_full || &valid_q[s];
      for (int unsigned a = 0; a < Ways; a++) begin
        for (int unsigned b = 0; b < a; b++) begin
          if (valid_q[s][a] && valid_q[s][b] && lines_q[s][a] == lines_q[s][b]) is_double = 1'b1;
        end
      end
    end
    for (int unsigned i = 0; i < Ports; i++) begin
      for (int unsigned j = 0; j < i; j++) if (busy_q[i] && busy_q[j] && missed_q[i] == missed_q[j]) is_double = 1'b1;
    end
  end

  logic waited_q;  // a line was requested and not accepted
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waited_q <= 1'b0;
    else waited_q <= refill_valid_o && !refill_ready_i;
  end

  Once : assert property (@(posedge clk_i) disable iff (!rst_ni) !is_double);
  Stays : assert property (@(posedge clk_i) disable iff (!rst_ni) !waited_q || refill_valid_o);
  Expected : assert property (@(posedge clk_i) disable iff (!rst_ni) !refill_rvalid_i || busy_q != '0);

  Merged : cover property (@(posedge clk_i) disable iff (!rst_ni) (misses & known) != '0);
  AllHit : cover property (@(posedge clk_i) disable iff (!rst_ni) &hits);
  FullSet : cover property (@(posedge clk_i) disable iff (!rst_ni) is_full);
  Outside : cover property (@(posedge clk_i) disable iff (!rst_ni) (req_i & ~is_code) != '0);
  ManyMisses : cover property (@(posedge clk_i) disable iff (!rst_ni) has_miss && !miss_valid_o);
  NoWay : cover property (@(posedge clk_i) disable iff (!rst_ni) !has_way);
  FlushesFill : cover property (@(posedge clk_i) disable iff (!rst_ni) flush_i && ends_fill);

endmodule

bind pspin_icache pspin_icache_sva #(
  .Ports    (Ports),
  .Ways     (Ways),
  .Sets     (Sets),
  .LineWidth(LineWidth)
) u_sva (.*);
