// SPDX-License-Identifier: Apache-2.0
// Accesses of one cluster's HPUs to memories other than its own L1, a word each (PsPIN III-C): up to InFlight, in
// order. An access accepted in cycle c reaches its memory in c plus half of the latency, or once the memory accepts it;
// its response follows after the other half, or once the memory has it.
module pspin_pe_port
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters       = 4,
  parameter int unsigned InFlight       = 8,
  parameter int unsigned RemoteL1Cycles = 16,
  parameter int unsigned L2Cycles       = 18,
  localparam int unsigned Memories      = 3 + Clusters,
  localparam int unsigned TagWidth      = InFlight > 1 ? $clog2(InFlight) : 1,
  localparam int unsigned MemoryWidth   = $clog2(Memories)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // The HPUs of the cluster.
  input  logic                   pe_valid_i,
  output logic                   pe_ready_o,
  input  word_request_t          pe_i,
  input  logic [HpuWidth-1:0]    pe_hpu_i,
  output logic                   pe_rvalid_o,
  output logic [HpuWidth-1:0]    pe_rhpu_o,
  output logic [31:0]            pe_rdata_o,

  // The memories: L2 handler memory, L2 packet buffer, program memory, and the L1 of each cluster.
  output logic                   valid_o,
  input  logic                   ready_i,
  output word_request_t          request_o,
  output logic [MemoryWidth-1:0] memory_o,
  output logic [TagWidth-1:0]    tag_o,
  input  logic [Memories-1:0]    answer_valid_i,
  input  logic [TagWidth-1:0]    answer_tag_i [Memories],
  input  logic [31:0]            answer_data_i [Memories]
);

  if (RemoteL1Cycles < 8 || L2Cycles < 8) begin : g_too_fast
    $fatal(1, "accelerator.pe: remote_l1_cycles and l2_cycles are at least 8");
  end

  localparam int unsigned MostCycles  = RemoteL1Cycles > L2Cycles ? RemoteL1Cycles : L2Cycles;
  localparam int unsigned CyclesWidth = $clog2(MostCycles);
  localparam logic [TagWidth-1:0] Last = TagWidth'(InFlight - 1);

  typedef logic [CyclesWidth-1:0] cycles_t;
  typedef logic [TagWidth-1:0]    tag_t;

  function automatic tag_t behind(tag_t tag);
    return tag == Last ? '0 : tag + 1'b1;
  endfunction

  // Cycles of an access to its memory and back, minus one for a register.
  function automatic cycles_t way_there(logic is_l1);
    return is_l1 ? cycles_t'(RemoteL1Cycles / 2 - 1) : cycles_t'(L2Cycles / 2 - 1);
  endfunction

  function automatic cycles_t way_back(logic is_l1);
    return is_l1 ? cycles_t'(RemoteL1Cycles - RemoteL1Cycles / 2 - 1) : cycles_t'(L2Cycles - L2Cycles / 2 - 1);
  endfunction

  // ---- Accesses: head to next are in their memories or wait for their turn to respond, next to tail in flight.
  tag_t                head_q, next_q, tail_q;
  logic [InFlight-1:0] taken_q, asked_q, done_q;
  word_request_t       request_q [InFlight];
  logic [HpuWidth-1:0] hpu_q [InFlight];
  logic [31:0]         data_q [InFlight];
  cycles_t             left_q [InFlight];
  logic                push, ask, pop;

  function automatic logic is_l1(logic [31:0] address);
    return place_of(address) == PlaceL1;
  endfunction

  assign pop         = asked_q[head_q] && done_q[head_q] && left_q[head_q] == '0;
  assign pe_ready_o  = !taken_q[tail_q] || pop;
  assign push        = pe_valid_i && pe_ready_o;
  assign valid_o     = taken_q[next_q] && !asked_q[next_q] && left_q[next_q] == '0;
  assign ask         = valid_o && ready_i;
  assign request_o   = request_q[next_q];
  assign tag_o       = next_q;
  assign pe_rvalid_o = pop;
  assign pe_rhpu_o   = hpu_q[head_q];
  assign pe_rdata_o  = data_q[head_q];

  always_comb begin
    unique case (place_of(request_o.address))
      PlaceL1:      memory_o = MemoryWidth'(3) + MemoryWidth'(cluster_of(request_o.address));
      PlacePacket:  memory_o = MemoryWidth'(1);
      PlaceProgram: memory_o = MemoryWidth'(2);
      default:      memory_o = '0;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_q  <= '0;
      next_q  <= '0;
      tail_q  <= '0;
      taken_q <= '0;
      asked_q <= '0;
      done_q  <= '0;
    end else begin
      for (int unsigned i = 0; i < Memories; i++) if (answer_valid_i[i]) done_q[answer_tag_i[i]] <= 1'b1;
      if (pop) begin
        head_q          <= behind(head_q);
        taken_q[head_q] <= 1'b0;
        asked_q[head_q] <= 1'b0;
        done_q[head_q]  <= 1'b0;
      end
      if (ask) begin
        next_q          <= behind(next_q);
        asked_q[next_q] <= 1'b1;
      end
      if (push) begin
        tail_q          <= behind(tail_q);
        taken_q[tail_q] <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < InFlight; i++) if (left_q[i] != '0) left_q[i] <= left_q[i] - 1'b1;
    for (int unsigned i = 0; i < Memories; i++) if (answer_valid_i[i]) data_q[answer_tag_i[i]] <= answer_data_i[i];
    if (ask) left_q[next_q] <= way_back(is_l1(request_o.address));
    if (push) begin
      request_q[tail_q] <= pe_i;
      hpu_q[tail_q]     <= pe_hpu_i;
      left_q[tail_q]    <= way_there(is_l1(pe_i.address));
    end
  end

endmodule
