// SPDX-License-Identifier: Apache-2.0
// L1 memory of a cluster (PsPIN III-B2, III-C): word-interleaved banks of one word, and the interconnect by which the
// cluster's HPUs access them in a single cycle, a word each.
//
// Priorities: beats, which never wait; words of other clusters; words of HPUs. If a word of another cluster wants the
// same bank as the one before it, an HPU that waited for this bank goes first: otherwise 24 HPUs of other clusters
// spinning on a word would take all cycles of its bank. Among HPUs that want the same bank, the first one from a
// pointer on wins, and the pointer moves to the first HPU without a grant. So no request overtakes an HPU at the
// pointer, and the pointer skips no waiting HPU (formal/prove_l1.sv). An atomic operation, which takes its bank for two
// cycles, starts only if no beat needs the second.
module pspin_l1
  import pspin_pkg::*;
#(
  parameter int unsigned Hpus  = 8,
  parameter int unsigned Banks = 64,         // a power of two
  parameter int unsigned Bytes = 1_048_576
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // HPUs of the cluster. A request is accepted in the cycle of its grant, and answered in the next, an atomic one in
  // the one after that. Only the lower address bits count. A request waits during an atomic one of the same HPU.
  input  logic [Hpus-1:0]        hpu_valid_i,
  output logic [Hpus-1:0]        hpu_gnt_o,
  input  word_request_t          hpu_i [Hpus],
  output logic [Hpus-1:0]        hpu_rvalid_o,
  output logic [31:0]            hpu_rdata_o [Hpus],

  // PE interconnect: words of other clusters, answered like those of HPUs.
  input  logic                   remote_valid_i,
  output logic                   remote_ready_o,
  input  word_request_t          remote_i,
  output logic                   remote_rvalid_o,
  output logic [31:0]            remote_rdata_o,

  // DMA engine of the cluster: beats, which use their banks in the next cycle, and never the same ones.
  input  logic                   write_valid_i,
  input  beat_request_t          write_i,
  input  logic                   read_valid_i,
  input  logic [31:0]            read_address_i,
  output logic [BeatBytes*8-1:0] read_data_o    // for the read two cycles before
);

  localparam int unsigned BeatWords  = BeatBytes / 4;
  localparam int unsigned Groups     = Banks / BeatWords;   // groups of banks: one per beat
  localparam int unsigned GroupWidth = Groups > 1 ? $clog2(Groups) : 1;
  localparam int unsigned BankWidth  = $clog2(Banks);
  localparam int unsigned Rows       = Bytes / 4 / Banks;
  localparam int unsigned RowWidth   = Rows > 1 ? $clog2(Rows) : 1;
  localparam int unsigned Askers     = Hpus + 1;            // the last requester is the PE interconnect
  localparam int unsigned IndexWidth = $clog2(Askers);
  localparam int unsigned HpuIndex   = Hpus > 1 ? $clog2(Hpus) : 1;

  if (Groups == 0 || Banks != 2 ** BankWidth) begin : gen_check
    $fatal(1, "the banks of L1 are a power of two, and a beat has at most a word for each");
  end

  // Words.
  logic [Askers-1:0]    wants, gnt, is_atomic, may_begin, asks_q, holds_q, late_q;
  word_request_t        request [Askers];
  logic [BankWidth-1:0] bank    [Askers];
  logic [BankWidth-1:0] bank_q  [Askers];
  logic [31:0]          rdata   [Askers];
  logic [31:0]          read    [Banks];
  logic [Banks-1:0]     is_next;                // banks that a beat uses in the next cycle

  assign wants = {remote_valid_i, hpu_valid_i} & ~holds_q;
  assign gnt   = {remote_ready_o, hpu_gnt_o};

  for (genvar i = 0; i < Askers; i++) begin : gen_asker
    if (i < Hpus) begin : gen_hpu
      assign request[i]     = hpu_i[i];
      assign hpu_rdata_o[i] = rdata[i];
    end else begin : gen_remote
      assign request[i]     = remote_i;
      assign remote_rdata_o = rdata[i];
    end
    assign bank[i]      = request[i].address[2+:BankWidth];
    assign is_atomic[i] = request[i].atop != AtopNone;
    assign may_begin[i] = wants[i] && !(is_atomic[i] && is_next[bank[i]]);
    assign rdata[i]     = read[bank_q[i]];

    always_ff @(posedge clk_i) begin
      if (gnt[i]) bank_q[i] <= bank[i];
    end
  end

  assign {remote_rvalid_o, hpu_rvalid_o} = asks_q | late_q;

  // Beats, in the cycle of the bank access.
  logic                  writes_q, reads_q;
  beat_request_t         write_q;
  logic [31:0]           read_address_q;
  logic [GroupWidth-1:0] read_group_q;     // group of the cycle before
  logic [Banks-1:0]      is_ready, is_written, is_read, is_remote;

  // Groups of banks of the beats' addresses.
  localparam int unsigned Written = 0, Read = 1, NextWritten = 2, NextRead = 3;
  logic [31:0]           beat       [4];
  logic [GroupWidth-1:0] group      [4];
  logic [Banks-1:0]      beat_banks [4];

  assign beat = '{write_q.address, read_address_q, write_i.address, read_address_i};

  for (genvar i = 0; i < 4; i++) begin : gen_beat
    assign group[i]      = GroupWidth'(Groups > 1 ? beat[i] >> $clog2(BeatBytes) : '0);
    assign beat_banks[i] = Banks'({BeatWords{1'b1}}) << (32'(group[i]) * BeatWords);
  end

  assign is_written = writes_q ? beat_banks[Written] : '0;
  assign is_read    = reads_q ? beat_banks[Read] : '0;
  assign is_next    = (write_valid_i ? beat_banks[NextWritten] : '0) | (read_valid_i ? beat_banks[NextRead] : '0);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      writes_q <= 1'b0;
      reads_q  <= 1'b0;
    end else begin
      writes_q <= write_valid_i;
      reads_q  <= read_valid_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (write_valid_i) write_q <= write_i;
    if (read_valid_i) read_address_q <= read_address_i;
    if (reads_q) read_group_q <= group[Read];
  end

  // Word of another cluster.
  logic [Banks-1:0] is_open;
  logic             owes_q;                 // an HPU waits for the bank last used by another cluster
  assign is_open        = is_ready & ~(is_written | is_read);
  assign remote_ready_o = may_begin[Hpus] && is_open[bank[Hpus]] && !(owes_q && bank[Hpus] == bank_q[Hpus]);
  assign is_remote      = Banks'(remote_ready_o) << bank[Hpus];

  // HPUs, in order from the pointer.
  logic [Banks-1:0]    is_left;
  logic [Hpus-1:0]     from_turn, has_lost, lost_from_turn;
  logic [HpuIndex-1:0] turn_q, first_lost;
  logic                any_lost;

  assign is_left   = is_open & ~is_remote;
  assign from_turn = {Hpus{1'b1}} << turn_q;

  always_comb begin
    for (int h = 0; h < int'(Hpus); h++) begin
      hpu_gnt_o[h] = may_begin[h] && is_left[bank[h]];
      for (int other = 0; other < int'(Hpus); other++) begin
        if (may_begin[other] && bank[other] == bank[h] && (from_turn[other] == from_turn[h] ? other < h : from_turn[other])) begin
          hpu_gnt_o[h] = 1'b0;
        end
      end
    end
  end

  assign has_lost       = wants[Hpus-1:0] & ~hpu_gnt_o;
  assign lost_from_turn = has_lost & from_turn;

  // Bank owed to an HPU: the one that a word of another cluster uses, or used while the HPU waited for it.
  logic [BankWidth-1:0] remote_bank;
  logic [Hpus-1:0]      wants_that;
  logic                 owes_d;

  assign remote_bank = remote_ready_o ? bank[Hpus] : bank_q[Hpus];
  assign owes_d      = (remote_ready_o || holds_q[Hpus] || owes_q) && |wants_that && !(|(wants_that & hpu_gnt_o));

  for (genvar h = 0; h < Hpus; h++) begin : gen_wants_that
    assign wants_that[h] = wants[h] && bank[h] == remote_bank;
  end

  pspin_first #(
    .N(Hpus)
  ) u_lost (
    .bits_i (|lost_from_turn ? lost_from_turn : has_lost),
    .valid_o(any_lost),
    .index_o(first_lost)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      turn_q  <= '0;
      asks_q  <= '0;
      holds_q <= '0;
      late_q  <= '0;
      owes_q  <= 1'b0;
    end else begin
      owes_q  <= owes_d;
      if (any_lost) turn_q <= first_lost;
      asks_q  <= gnt & ~is_atomic;
      holds_q <= gnt & is_atomic;
      late_q  <= holds_q;
    end
  end

  for (genvar lane = 0; lane < BeatWords; lane++) begin : gen_lane
    logic [31:0] words [Groups];
    for (genvar g = 0; g < Groups; g++) begin : gen_group
      assign words[g] = read[g*BeatWords+lane];
    end
    assign read_data_o[lane*32+:32] = words[read_group_q];
  end

  // Banks, and the requester served by each.
  typedef struct packed {
    logic                we;
    atop_e               atop;
    logic [RowWidth-1:0] row;
    logic [3:0]          be;
    logic                expected_valid;
  } access_t;

  access_t          access     [Askers];
  logic [31:0]      wdata      [Askers];
  logic [31:0]      expected   [Askers];
  logic [Banks-1:0] takes_word;
  logic [Banks-1:0] asker_bits [IndexWidth];

  always_comb begin
    takes_word = '0;
    for (int unsigned k = 0; k < IndexWidth; k++) asker_bits[k] = '0;
    for (int unsigned i = 0; i < Askers; i++) begin
      takes_word = takes_word | (Banks'(gnt[i]) << bank[i]);
      for (int unsigned k = 0; k < IndexWidth; k++) begin
        if (1'(i >> k)) asker_bits[k] = asker_bits[k] | (Banks'(gnt[i]) << bank[i]);
      end
    end
    for (int unsigned i = 0; i < Askers; i++) begin
      access[i]   = '{
        we:             request[i].we,
        atop:           request[i].atop,
        row:            request[i].address[2+BankWidth+:RowWidth],
        be:             request[i].be,
        expected_valid: request[i].expected_valid
      };
      wdata[i]    = request[i].wdata;
      expected[i] = request[i].expected;
    end
  end

  for (genvar b = 0; b < Banks; b++) begin : gen_bank
    localparam int unsigned Lane = b % BeatWords;

    logic [IndexWidth-1:0] asker;
    access_t               chosen;

    for (genvar k = 0; k < IndexWidth; k++) begin : gen_bit
      assign asker[k] = asker_bits[k][b];
    end

    always_comb begin
      chosen = access[asker];
      if (!takes_word[b]) begin
        chosen.we   = is_written[b];
        chosen.atop = AtopNone;
        chosen.row  = is_written[b] ? write_q.address[2+BankWidth+:RowWidth] : read_address_q[2+BankWidth+:RowWidth];
        chosen.be   = write_q.strobe[Lane*4+:4];
      end
    end

    pspin_l1_bank #(
      .Rows(Rows)
    ) u_bank (
      .clk_i,
      .rst_ni,
      .req_i           (takes_word[b] || is_written[b] || is_read[b]),
      .gnt_o           (is_ready[b]),
      .we_i            (chosen.we),
      .atop_i          (chosen.atop),
      .row_i           (chosen.row),
      .be_i            (chosen.be),
      .wdata_i         (takes_word[b] ? wdata[asker] : write_q.wdata[Lane*32+:32]),
      .expected_valid_i(chosen.expected_valid),
      .expected_i      (expected[asker]),
      .rvalid_o        (),
      .rdata_o         (read[b])
    );
  end

endmodule
