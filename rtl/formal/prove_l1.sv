// SPDX-License-Identifier: Apache-2.0
// No HPU waits for a bank forever: while no beat arrives, each gets its word after at most four cycles for each HPU of
// the cluster, whatever the other HPUs and other clusters request. A waiting HPU keeps its request, unless it is
// killed.
module prove_l1
  import pspin_pkg::*;
#(
  parameter int unsigned Hpus = 3,
  localparam int unsigned Banks = BeatBytes / 4,
  localparam int unsigned BankWidth = $clog2(Banks),
  localparam int unsigned HpuIndex = $clog2(Hpus)
) (
  input logic                           clk_i,
  input logic                           rst_ni,
  input logic [Hpus-1:0]                hpu_valid_i,
  input logic [Hpus-1:0]                hpu_swaps_i,
  input logic [Hpus-1:0][BankWidth-1:0] hpu_bank_i,
  input logic                           remote_valid_i,
  input logic                           remote_swaps_i,
  input logic [BankWidth-1:0]           remote_bank_i,
  input logic [HpuIndex-1:0]            watched_i
);

  logic [Hpus-1:0]        gnt, unused_rvalid;
  word_request_t          hpu [Hpus];
  word_request_t          remote;
  logic [31:0]            unused_rdata [Hpus];
  logic                   unused_ready, unused_remote_rvalid;
  logic [31:0]            unused_remote_rdata;
  logic [BeatBytes*8-1:0] unused_read_data;

  always_comb begin
    remote         = '0;
    remote.atop    = remote_swaps_i ? AtopSwap : AtopNone;
    remote.address = 32'(remote_bank_i) << 2;
  end

  for (genvar h = 0; h < Hpus; h++) begin : gen_hpu
    always_comb begin
      hpu[h]         = '0;
      hpu[h].atop    = hpu_swaps_i[h] ? AtopSwap : AtopNone;
      hpu[h].address = 32'(hpu_bank_i[h]) << 2;
    end
  end

  pspin_l1 #(
    .Hpus (Hpus),
    .Banks(Banks),
    .Bytes(Banks * 4)
  ) u_l1 (
    .clk_i,
    .rst_ni,
    .hpu_valid_i,
    .hpu_gnt_o      (gnt),
    .hpu_i          (hpu),
    .hpu_rvalid_o   (unused_rvalid),
    .hpu_rdata_o    (unused_rdata),
    .remote_valid_i,
    .remote_ready_o (unused_ready),
    .remote_i       (remote),
    .remote_rvalid_o(unused_remote_rvalid),
    .remote_rdata_o (unused_remote_rdata),
    .write_valid_i  (1'b0),
    .write_i        ('0),
    .read_valid_i   (1'b0),
    .read_address_i ('0),
    .read_data_o    (unused_read_data)
  );

  // Cycles for which the watched HPU waits, and cycles for which the first in the order waits as the first.
  logic                           live_q = 1'b0;
  logic [Hpus-1:0]                loses, loses_q, swaps_q;
  logic [Hpus-1:0][BankWidth-1:0] bank_q;
  logic [HpuIndex-1:0]            watched_q;
  logic [$clog2(4*Hpus):0]        waits_q, distance;
  logic [2:0]                     first_q;
  assign loses    = hpu_valid_i & ~u_l1.holds_q[Hpus-1:0] & ~gnt;
  assign distance = watched_q >= u_l1.turn_q ? watched_q - u_l1.turn_q : Hpus + watched_q - u_l1.turn_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      loses_q <= '0;
      waits_q <= '0;
      first_q <= '0;
    end else begin
      loses_q <= loses;
      waits_q <= loses[watched_q] ? waits_q + 1'b1 : '0;
      first_q <= loses[u_l1.turn_q] ? first_q + 1'b1 : '0;
    end
  end

  always_ff @(posedge clk_i) begin
    live_q    <= 1'b1;
    swaps_q   <= hpu_swaps_i;
    bank_q    <= hpu_bank_i;
    watched_q <= live_q ? watched_q : watched_i;
  end

  always_comb begin
    if (live_q) assume (rst_ni);
    assume (watched_q < Hpus);
    for (int unsigned h = 0; h < Hpus; h++) begin
      if (loses_q[h] && hpu_valid_i[h]) assume (hpu_swaps_i[h] == swaps_q[h] && hpu_bank_i[h] == bank_q[h]);
    end
    if (rst_ni) begin
      assert (waits_q < 4 * Hpus);

      // The order approaches the watched HPU whenever the first one gets its word; this makes the property inductive.
      assert (u_l1.turn_q < Hpus);
      assert (first_q < 4);
      assert (waits_q == '0 || waits_q <= 4 * (Hpus - 1 - distance) + first_q);
    end
  end

endmodule
