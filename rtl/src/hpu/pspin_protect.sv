// Protection of memory, to the byte (PsPIN III-B2): whether an HPU may use a range of addresses, and where that is. A range is
// allowed when one window holds all of it, and one memory.
module pspin_protect
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters     = 4,
  parameter int unsigned L1Bytes      = 1 << 20,
  parameter int unsigned HandlerBytes = 4 << 20,
  parameter int unsigned PacketBytes  = 4 << 20,
  parameter int unsigned ProgramBytes = 32 << 10
) (
  // From the HPU: who it is, and what the handler that runs may use; each scratchpad lies in its cluster's L1.
  input  logic [ClusterWidth-1:0] cluster_i,
  input  windows_t                windows_i,
  input  range_t [Clusters-1:0]   scratchpads_i,

  // What is asked for, at an address as the HPU sees it.
  input  range_t                  range_i,
  input  logic                    writes_i,

  // The answer, in the same cycle.
  output logic                    allowed_o,
  output logic                    is_own_l1_o,
  output logic [31:0]             common_o      // its address as everybody sees it
);

  logic [31:0] own_offset, l1_offset, cluster;
  logic        exists, is_l1;
  range_t      asked, scratchpad;

  // Whether a range holds another. One that has no bytes holds none, not even the one without bytes.
  function automatic logic holds(range_t window, range_t inner);
    logic [31:0] offset;
    offset = inner.address - window.address;
    return window.size != '0 && 33'(offset) + 33'(inner.size) <= 33'(window.size);
  endfunction

  assign own_offset = range_i.address - OwnL1Start;
  assign common_o   = own_offset < L1Bytes ? L1Start + 32'(cluster_i) * L1Span + own_offset : range_i.address;
  assign asked      = '{common_o, range_i.size};

  assign l1_offset   = common_o - L1Start;
  assign cluster     = l1_offset / L1Span;
  assign is_l1       = cluster < Clusters;
  assign is_own_l1_o = cluster == 32'(cluster_i);

  always_comb begin
    if (common_o >= ProgramStart) exists = holds('{ProgramStart, ProgramBytes}, asked);
    else if (common_o >= PacketStart) exists = holds('{PacketStart, PacketBytes}, asked);
    else if (common_o >= HandlerStart) exists = holds('{HandlerStart, HandlerBytes}, asked);
    else exists = is_l1 && holds('{L1Start, L1Bytes}, '{L1Start + l1_offset % L1Span, asked.size});
  end

  always_comb begin
    scratchpad = '0;
    for (int unsigned i = 0; i < Clusters; i++) if (cluster == i) scratchpad = scratchpads_i[i];
  end

  assign allowed_o = exists && (holds(windows_i.own_stack, asked) || holds(windows_i.static_data, asked) ||
                                (holds(windows_i.code, asked) && !writes_i) || holds(windows_i.packet, asked) ||
                                holds(windows_i.l2_packet, asked) || holds(windows_i.handler_memory, asked) ||
                                holds(scratchpad, asked));

endmodule
