// SPDX-License-Identifier: Apache-2.0
// Byte-granular memory protection (PsPIN III-B2): checks whether an HPU may use a range of addresses, and translates
// it. A range is allowed when it lies within one window and one memory. A window ends at 2^32: it does not continue at
// address 0.
module pspin_protect
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters     = 4,
  parameter int unsigned L1Bytes      = 1 << 20,
  parameter int unsigned HandlerBytes = 4 << 20,
  parameter int unsigned PacketBytes  = 4 << 20,
  parameter int unsigned ProgramBytes = 32 << 10
) (
  // From the HPU: its identity, and windows of the running handler; each scratchpad is in its cluster's L1.
  input  logic [ClusterWidth-1:0] cluster_i,
  input  windows_t                windows_i,
  input  range_t [Clusters-1:0]   scratchpads_i,

  // Range to check, at an address as seen by the HPU.
  input  range_t                  range_i,
  input  logic                    writes_i,

  // Result, in the same cycle.
  output logic                    allowed_o,
  output logic                    is_own_l1_o,
  output logic [31:0]             common_o      // its global address
);

  // Candidates for the range: the windows of the task with the scratchpad of the cluster, and the memory that contains
  // it. The windows are those of windows_t, from its last member on.
  localparam int unsigned Code = 3;
  localparam int unsigned Windows = 7;

  logic [31:0]        own_offset, l1_offset, cluster;
  logic               is_l1;
  range_t             memory, scratchpad;
  range_t [Windows:0] candidates;
  logic [Windows:0]   holds;
  logic [Windows-1:0] usable;

  assign own_offset = range_i.address - OwnL1Start;
  assign common_o   = own_offset < L1Bytes ? L1Start + 32'(cluster_i) * L1Span + own_offset : range_i.address;

  assign l1_offset   = common_o - L1Start;
  assign cluster     = l1_offset / L1Span;
  assign is_l1       = cluster < Clusters;
  assign is_own_l1_o = cluster == 32'(cluster_i);

  always_comb begin
    if (common_o >= ProgramStart) memory = '{ProgramStart, ProgramBytes};
    else if (common_o >= PacketStart) memory = '{PacketStart, PacketBytes};
    else if (common_o >= HandlerStart) memory = '{HandlerStart, HandlerBytes};
    else memory = '{L1Start + cluster * L1Span, is_l1 ? L1Bytes : '0};
  end

  always_comb begin
    scratchpad = '0;
    for (int unsigned i = 0; i < Clusters; i++) if (cluster == i) scratchpad = scratchpads_i[i];
  end

  // An empty window contains nothing, not even an empty range.
  assign candidates = {memory, scratchpad, windows_i};

  for (genvar i = 0; i <= Windows; i++) begin : gen_holds
    logic [31:0] offset;
    logic        is_below;
    assign {is_below, offset} = 33'(common_o) - 33'(candidates[i].address);
    assign holds[i] = candidates[i].size != '0 && !is_below && 33'(offset) + 33'(range_i.size) <= 33'(candidates[i].size);
  end

  always_comb begin
    usable = '1;
    if (writes_i) usable[Code] = 1'b0;
  end

  assign allowed_o = holds[Windows] && |(holds[Windows-1:0] & usable);

endmodule
