// SPDX-License-Identifier: Apache-2.0
// Program memory (PsPIN III-C): one half-duplex port, which refills the instruction caches of the clusters round robin,
// a line at a time. In the remaining cycles HPUs read words, then NIC and host write and read beats, one word of the
// port per cycle.
//
// A line requested in cycle s arrives before s + MissCycles.
module pspin_program_memory
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters   = 4,
  parameter int unsigned Bytes      = 32768,
  parameter int unsigned PortBytes  = 8,
  parameter int unsigned LineBytes  = 32,
  parameter int unsigned MissCycles = 12,
  localparam int unsigned PortWidth = PortBytes * 8
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // Instruction caches of the clusters: a line, and its words in order. Ready selects the cluster.
  input  logic [Clusters-1:0]  refill_valid_i,
  output logic [Clusters-1:0]  refill_ready_o,
  input  logic [31:0]          refill_address_i [Clusters],
  output logic [Clusters-1:0]  refill_rvalid_o,
  output logic [PortWidth-1:0] refill_rdata_o,

  // PE interconnect: words for HPUs, which may only read code.
  input  logic                 pe_valid_i,
  output logic                 pe_ready_o,
  input  logic [31:0]          pe_address_i,
  output logic                 pe_rvalid_o,
  output logic [31:0]          pe_rdata_o,

  // NIC-host interconnect: a beat to write or read, accepted with its last word.
  input  logic                 write_valid_i,
  output logic                 write_ready_o,
  input  beat_request_t        write_i,
  input  logic                 read_valid_i,
  output logic                 read_ready_o,
  input  logic [31:0]          read_address_i,
  output logic [511:0]         read_data_o        // for the read three cycles before
);

  localparam int unsigned Rows         = Bytes / PortBytes;
  localparam int unsigned LineWords    = LineBytes / PortBytes;
  localparam int unsigned BeatWords    = BeatBytes / PortBytes;
  localparam int unsigned ClusterIndex = Clusters > 1 ? $clog2(Clusters) : 1;
  localparam int unsigned RowWidth     = $clog2(Rows);
  localparam int unsigned LineWidth    = $clog2(LineWords);
  localparam int unsigned BeatWidth    = $clog2(BeatWords);

  if (MissCycles < LineWords + 3) begin : g_too_fast
    $fatal(1, "accelerator.icache.miss_cycles: the program memory needs 3 and one for each word of a line");
  end
  if (LineWords < 2 || PortBytes < 4 || PortBytes >= BeatBytes) begin : g_narrow
    $fatal(1, "accelerator.program.port_bits: a line has at least two words of the port, and a beat too");
  end

  typedef logic [RowWidth-1:0] row_t;

  function automatic row_t row_of(logic [31:0] address);
    return row_t'((address - ProgramStart) / PortBytes);
  endfunction

  // ---- Lines: one starts after the cycles of the one before.
  logic                    any_line, takes_line, begins;
  logic [ClusterIndex-1:0] whose, line_cluster, line_cluster_q;
  logic [LineWidth-1:0]    left_q, line_index_q;
  logic                    line_active_q, unused_empty;
  row_t                    line_row, line_row_q;

  assign takes_line     = any_line && left_q == '0;
  assign refill_ready_o = Clusters'(left_q == '0) << whose;

  pspin_rr_arbiter #(
    .N(Clusters)
  ) u_lines (
    .clk_i,
    .rst_ni,
    .requests_i(refill_valid_i),
    .take_i    (left_q == '0),
    .valid_o   (any_line),
    .index_o   (whose)
  );

  pspin_delay #(
    .Width (ClusterIndex + RowWidth),
    .Cycles(MissCycles - LineWords - 3)
  ) u_way (
    .clk_i,
    .rst_ni,
    .valid_i(takes_line),
    .data_i ({whose, row_of(refill_address_i[whose])}),
    .valid_o(begins),
    .data_o ({line_cluster, line_row}),
    .empty_o(unused_empty)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      left_q        <= '0;
      line_active_q <= 1'b0;
      line_index_q  <= '0;
    end else begin
      left_q        <= takes_line ? LineWidth'(LineWords - 1) : left_q - LineWidth'(left_q != '0);
      line_active_q <= begins || (line_active_q && line_index_q != '1);
      line_index_q  <= begins ? '0 : line_index_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (begins) begin
      line_cluster_q <= line_cluster;
      line_row_q     <= line_row;
    end
  end

  // ---- Port. A beat to read is collected, then accepted, and stays until it leaves.
  localparam int unsigned PhaseWidth = BeatWidth + 1;
  localparam logic [PhaseWidth-1:0] Collected = PhaseWidth'(BeatWords + 1), Rested = PhaseWidth'(BeatWords + 2);

  logic [BeatWidth-1:0]  write_index_q;
  logic [PhaseWidth-1:0] phase_q;
  logic                  takes_pe, writes, is_reading, reads;
  row_t                  row;
  logic [PortWidth-1:0]  rdata;

  assign pe_ready_o    = !line_active_q;
  assign takes_pe      = pe_valid_i && pe_ready_o;
  assign writes        = write_valid_i && !line_active_q && !takes_pe;
  assign is_reading    = read_valid_i && phase_q < PhaseWidth'(BeatWords);
  assign reads         = is_reading && !line_active_q && !takes_pe && !writes;
  assign write_ready_o = writes && write_index_q == BeatWidth'(BeatWords - 1);
  assign read_ready_o  = phase_q == Collected;

  always_comb begin
    row = line_row_q + row_t'(line_index_q);
    if (takes_pe) row = row_of(pe_address_i);
    else if (writes) row = row_of(write_i.address) + row_t'(write_index_q);
    else if (reads) row = row_of(read_address_i) + row_t'(phase_q);
  end

  pspin_sram #(
    .Rows (Rows),
    .Bytes(PortBytes)
  ) u_sram (
    .clk_i,
    .req_i  (line_active_q || takes_pe || writes || reads),
    .we_i   (writes),
    .row_i  (row),
    .be_i   (write_i.strobe[write_index_q*PortBytes+:PortBytes]),
    .wdata_i(write_i.wdata[write_index_q*PortWidth+:PortWidth]),
    .rdata_o(rdata)
  );

  // ---- Data read in the cycle before.
  logic                    line_read_q, pe_read_q, beat_read_q;
  logic [ClusterIndex-1:0] cluster_q;
  logic [BeatWidth-1:0]    place_q;
  logic [31:0]             word_q;
  logic [511:0]            beat_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_index_q   <= '0;
      phase_q         <= '0;
      line_read_q     <= 1'b0;
      pe_read_q       <= 1'b0;
      beat_read_q     <= 1'b0;
      pe_rvalid_o     <= 1'b0;
      refill_rvalid_o <= '0;
    end else begin
      if (writes) write_index_q <= write_index_q + 1'b1;
      if (phase_q == Rested) phase_q <= '0;
      else if (reads || phase_q >= PhaseWidth'(BeatWords)) phase_q <= phase_q + 1'b1;
      line_read_q     <= line_active_q;
      pe_read_q       <= takes_pe;
      beat_read_q     <= reads;
      pe_rvalid_o     <= pe_read_q;
      refill_rvalid_o <= Clusters'(line_read_q) << cluster_q;
    end
  end

  always_ff @(posedge clk_i) begin
    cluster_q <= line_cluster_q;
    place_q   <= BeatWidth'(phase_q);
    word_q    <= pe_address_i % PortBytes / 4;
    if (line_read_q) refill_rdata_o <= rdata;
    if (pe_read_q) pe_rdata_o <= rdata[word_q*32+:32];
    if (beat_read_q) beat_q[place_q*PortWidth+:PortWidth] <= rdata;
  end

  assign read_data_o = beat_q;

endmodule
