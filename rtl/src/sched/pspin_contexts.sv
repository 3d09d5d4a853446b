// SPDX-License-Identifier: Apache-2.0
// Table of execution contexts (PsPIN III-A), of which each cluster has a copy. A row has the context and its scratchpad
// in the L1 of each cluster. Its owner writes a row only while no message uses the context. The memories have no reset:
// until its first write after a reset, a row is empty and outputs 0.
module pspin_contexts
  import pspin_pkg::*;
#(
  parameter int unsigned Contexts = 64,
  parameter int unsigned Clusters = 4
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

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

  // Written rows, by context; and for the row that is output.
  logic [Contexts-1:0]               has_row_q;
  logic [Contexts-1:0][Clusters-1:0] has_pad_q;
  logic                              has_row;
  logic [Clusters-1:0]               has_pad;
  execution_context_t                row;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      has_row_q <= '0;
      has_pad_q <= '0;
      has_row   <= 1'b0;
      has_pad   <= '0;
    end else begin
      if (context_write_i) has_row_q[IndexWidth'(context_index_i)] <= 1'b1;
      for (int unsigned i = 0; i < Clusters; i++) begin
        if (scratchpad_write_i && scratchpad_cluster_i == ClusterWidth'(i)) has_pad_q[IndexWidth'(scratchpad_index_i)][i] <= 1'b1;
      end
      if (read_i) begin
        has_row <= has_row_q[IndexWidth'(index_i)];
        has_pad <= has_pad_q[IndexWidth'(index_i)];
      end
    end
  end

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
    .rdata_o(row)
  );

  assign context_o = has_row ? row : '0;

  for (genvar i = 0; i < Clusters; i++) begin : g_scratchpads
    range_t pad;

    assign scratchpads_o[i] = has_pad[i] ? pad : '0;

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
      .rdata_o(pad)
    );
  end

endmodule
