// What HPUs of a cluster wait for: bound, simulation only. The numbers of events are those of crates/rtl/src/events.rs.
module pspin_observe_cluster
  import pspin_pkg::*;
#(
  parameter int unsigned Hpus = 8
) (
  input logic                    clk_i,
  input logic                    rst_ni,
  input logic [ClusterWidth-1:0] cluster_i,
  input logic [Hpus-1:0]         l1_valid_i,
  input logic [Hpus-1:0]         l1_gnt_i,
  input logic                    misses_i
);

  import "DPI-C" function void pspin_event(
    input int kind, input int unit, input int a, input int b, input int c, input int d, input int e);

  localparam int Conflicts = 28, Miss = 29;

  logic [Hpus-1:0] waits;
  assign waits = l1_valid_i & ~l1_gnt_i;

  always_ff @(posedge clk_i) begin
    if (rst_ni && waits != '0) pspin_event(Conflicts, 32'(cluster_i), 32'($countones(waits)), 0, 0, 0, 0);
    if (rst_ni && misses_i) pspin_event(Miss, 32'(cluster_i), 0, 0, 0, 0, 0);
  end

endmodule

bind pspin_cluster pspin_observe_cluster #(
  .Hpus(HpusPerCluster)
) u_observe (
  .clk_i,
  .rst_ni,
  .cluster_i,
  .l1_valid_i(l1_valid),
  .l1_gnt_i  (l1_gnt),
  .misses_i  (misses)
);
