// SPDX-License-Identifier: Apache-2.0
// Table of execution contexts (PsPIN III-A), of which each cluster has a copy. A row has the context and its scratchpad
// in the L1 of each cluster. Its owner writes a row only while no message uses the context.
module pspin_contexts
  import pspin_pkg::*;
#(
  parameter int unsigned Contexts = 64,
  parameter int unsigned Clusters = 4
) (
  input  logic                    clk_i,

  // From the registers.
  input  logic                    context_write_i,
  input  logic [ContextWidth-1:0] context_index_i,
  input  execution_context_t      context_i,
  input  logic                    scratchpad_write_i,
  input  logic [ContextWidth-1:0] scratchpad_index_i,
  input  logic [ClusterWidth-1:0] scratchpad_cluster_i,
  input  range_t                  scratchpad_i,

  // From the scheduler of the cluster: the row is output in the next cycle, and stable until the next read.
  input  logic                    read_i,
  input  logic [ContextWidth-1:0] index_i,
  output execution_context_t      context_o,
  output range_t [Clusters-1:0]   scratchpads_o   // by cluster
);

  localparam int unsigned IndexWidth = Contexts > 1 ? $clog2(Contexts) : 1;

  // Widths suit all configurations.
  logic unused;
  assign unused = ^{context_index_i, scratchpad_index_i, index_i};

  pspin_sram_2p #(
    .Rows (Contexts),
    .Width($bits(execution_context_t))
  ) u_contexts (
    .clk_i,
    .we_i   (context_write_i),
    .wrow_i (IndexWidth'(context_index_i)),
    .wdata_i(context_i),
    .re_i   (read_i),
    .rrow_i (IndexWidth'(index_i)),
    .rdata_o(context_o)
  );

  for (genvar i = 0; i < Clusters; i++) begin : g_scratchpads
    pspin_sram_2p #(
      .Rows (Contexts),
      .Width($bits(range_t))
    ) u_scratchpads (
      .clk_i,
      .we_i   (scratchpad_write_i && scratchpad_cluster_i == ClusterWidth'(i)),
      .wrow_i (IndexWidth'(scratchpad_index_i)),
      .wdata_i(scratchpad_i),
      .re_i   (read_i),
      .rrow_i (IndexWidth'(index_i)),
      .rdata_o(scratchpads_o[i])
    );
  end

endmodule
