// SPDX-License-Identifier: Apache-2.0
// Interconnect through which HPUs access memories other than their own L1, a word at a time (PsPIN III-C). Each memory
// serves the clusters round robin, one access per cycle.
module pspin_pe_xbar
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters       = 4,
  parameter int unsigned InFlight       = 8,   // accesses in flight per cluster
  parameter int unsigned RemoteL1Cycles = 16,
  parameter int unsigned L2Cycles       = 18,
  localparam int unsigned Memories      = 3 + Clusters
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // HPUs of each cluster. Responses are in order, including those to writes.
  input  logic [Clusters-1:0] pe_valid_i,
  output logic [Clusters-1:0] pe_ready_o,
  input  word_request_t       pe_i [Clusters],
  input  logic [HpuWidth-1:0] pe_hpu_i [Clusters],
  output logic [Clusters-1:0] pe_rvalid_o,
  output logic [HpuWidth-1:0] pe_rhpu_o [Clusters],
  output logic [31:0]         pe_rdata_o [Clusters],

  // L1 of each cluster, for the HPUs of others: in the cycle of the access. Responses are in order.
  output logic [Clusters-1:0] remote_valid_o,
  input  logic [Clusters-1:0] remote_ready_i,
  output word_request_t       remote_o [Clusters],
  input  logic [Clusters-1:0] remote_rvalid_i,
  input  logic [31:0]         remote_rdata_i [Clusters],

  // L2 handler memory, L2 packet buffer, program memory: in the cycle of the access. Responses are in order.
  output logic [2:0]          memory_valid_o,
  input  logic [2:0]          memory_ready_i,
  output word_request_t       memory_o [3],
  input  logic [2:0]          memory_rvalid_i,
  input  logic [31:0]         memory_rdata_i [3]
);

  localparam int unsigned TagWidth     = InFlight > 1 ? $clog2(InFlight) : 1;
  localparam int unsigned MemoryWidth  = $clog2(Memories);
  localparam int unsigned ClusterIndex = Clusters > 1 ? $clog2(Clusters) : 1;
  localparam int unsigned Answers      = 4;  // outstanding responses per memory

  // ---- The ports of the clusters.
  logic [Clusters-1:0]    valid, ready;
  word_request_t          request [Clusters];
  logic [MemoryWidth-1:0] memory [Clusters];
  logic [TagWidth-1:0]    tag [Clusters];
  logic [Memories-1:0]    answer_valid [Clusters];
  logic [TagWidth-1:0]    answer_tag [Memories];
  logic [31:0]            answer_data [Memories];

  for (genvar i = 0; i < Clusters; i++) begin : g_port
    pspin_pe_port #(
      .Clusters      (Clusters),
      .InFlight      (InFlight),
      .RemoteL1Cycles(RemoteL1Cycles),
      .L2Cycles      (L2Cycles)
    ) u_port (
      .clk_i,
      .rst_ni,
      .pe_valid_i    (pe_valid_i[i]),
      .pe_ready_o    (pe_ready_o[i]),
      .pe_i          (pe_i[i]),
      .pe_hpu_i      (pe_hpu_i[i]),
      .pe_rvalid_o   (pe_rvalid_o[i]),
      .pe_rhpu_o     (pe_rhpu_o[i]),
      .pe_rdata_o    (pe_rdata_o[i]),
      .valid_o       (valid[i]),
      .ready_i       (ready[i]),
      .request_o     (request[i]),
      .memory_o      (memory[i]),
      .tag_o         (tag[i]),
      .answer_valid_i(answer_valid[i]),
      .answer_tag_i  (answer_tag),
      .answer_data_i (answer_data)
    );
  end

  // ---- Memories, each with its outstanding accesses.
  logic [Memories-1:0] memory_valid, memory_ready, memory_takes, memory_rvalid;
  word_request_t       memory_request [Memories];
  logic [Clusters-1:0] grants [Memories];

  for (genvar i = 0; i < Memories; i++) begin : g_memory
    logic [Clusters-1:0]      requests;
    logic [ClusterIndex-1:0]  index, whose;
    logic                     any, has_room, unused_valid;
    logic [$clog2(Answers):0] unused_count;

    for (genvar j = 0; j < Clusters; j++) begin : g_cluster
      assign requests[j]        = valid[j] && memory[j] == MemoryWidth'(i);
      assign answer_valid[j][i] = memory_rvalid[i] && whose == ClusterIndex'(j);
    end

    pspin_rr_arbiter #(
      .N(Clusters)
    ) u_arbiter (
      .clk_i,
      .rst_ni,
      .requests_i(requests),
      .take_i    (memory_takes[i]),
      .valid_o   (any),
      .index_o   (index)
    );

    assign memory_valid[i]   = any && has_room;
    assign memory_takes[i]   = memory_valid[i] && memory_ready[i];
    assign memory_request[i] = request[index];
    assign grants[i]         = Clusters'(memory_takes[i]) << index;

    pspin_fifo #(
      .Width(ClusterIndex + TagWidth),
      .Depth(Answers)
    ) u_answers (
      .clk_i,
      .rst_ni,
      .valid_i(memory_takes[i]),
      .ready_o(has_room),
      .data_i ({index, tag[index]}),
      .valid_o(unused_valid),
      .ready_i(memory_rvalid[i]),
      .data_o ({whose, answer_tag[i]}),
      .count_o(unused_count)
    );
  end

  always_comb begin
    ready = '0;
    for (int unsigned i = 0; i < Memories; i++) ready |= grants[i];
  end

  // ---- Outside ports.
  assign memory_valid_o = memory_valid[2:0];
  assign remote_valid_o = memory_valid[Memories-1:3];
  assign memory_ready   = {remote_ready_i, memory_ready_i};
  assign memory_rvalid  = {remote_rvalid_i, memory_rvalid_i};

  for (genvar i = 0; i < 3; i++) begin : g_l2
    assign memory_o[i]    = memory_request[i];
    assign answer_data[i] = memory_rdata_i[i];
  end

  for (genvar i = 0; i < Clusters; i++) begin : g_l1
    assign remote_o[i]      = memory_request[3+i];
    assign answer_data[3+i] = remote_rdata_i[i];
  end

endmodule
