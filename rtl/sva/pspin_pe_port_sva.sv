// SPDX-License-Identifier: Apache-2.0
// Invariants of the port through which a cluster's HPUs reach other memories: requests are stable, each access is
// requested and answered once, and responses go to their HPUs in the order of the accesses.
module pspin_pe_port_sva
  import pspin_pkg::*;
#(
  parameter int unsigned InFlight = 8,
  parameter int unsigned TagWidth = 3,
  parameter int unsigned MemoryWidth = 3
) (
  input logic                   clk_i,
  input logic                   rst_ni,
  input logic                   pe_valid_i,
  input logic                   pe_ready_o,
  input logic [HpuWidth-1:0]    pe_hpu_i,
  input logic                   pe_rvalid_o,
  input logic [HpuWidth-1:0]    pe_rhpu_o,
  input logic                   valid_o,
  input logic                   ready_i,
  input word_request_t          request_o,
  input logic [MemoryWidth-1:0] memory_o,
  input logic [TagWidth-1:0]    tag_o
);

  default clocking @(posedge clk_i);
  endclocking
  default disable iff (!rst_ni);

  // Outstanding accesses, and number of them in a memory.
  logic [HpuWidth-1:0] hpus[$];
  int unsigned         asked;

  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      hpus.delete();
      asked = 0;
    end else begin
      if (valid_o && ready_i) asked++;
      NotMore : assert (asked <= hpus.size());
      if (pe_rvalid_o) begin
        Asked : assert (asked != 0);
        InOrder : assert (hpus.size() != 0 && hpus[0] == pe_rhpu_o);
        void'(hpus.pop_front());
        asked--;
      end
      if (pe_valid_i && pe_ready_o) hpus.push_back(pe_hpu_i);
      Room : assert (hpus.size() <= InFlight);
    end
  end

  Stays : assert property (valid_o && !ready_i |=> valid_o && $stable(request_o) && $stable(memory_o) && $stable(tag_o));
  Memory : assert property (valid_o |-> place_of(request_o.address) != PlaceL1 || 32'(memory_o) == 3 + 32'(cluster_of(request_o.address)));

endmodule

bind pspin_pe_port pspin_pe_port_sva #(
  .InFlight   (InFlight),
  .TagWidth   (TagWidth),
  .MemoryWidth(MemoryWidth)
) u_sva (.*);
