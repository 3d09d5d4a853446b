// SPDX-License-Identifier: Apache-2.0
// Instruction cache shared by the HPUs of a cluster (PsPIN III-C): set associative, with a port for each HPU. A hit is
// granted at once and answered in the next cycle. A miss waits for its line, which replaces the oldest line of its set
// (FIFO). Concurrent misses of a line cause one refill.
//
// Each port has a private memory with a copy of all lines: one memory with as many ports would be larger.
module pspin_icache
  import pspin_pkg::*;
#(
  parameter int unsigned Ports        = 8,
  parameter int unsigned Bytes        = 4_096,
  parameter int unsigned Ways         = 4,
  parameter int unsigned LineBytes    = 32,
  parameter int unsigned ProgramBytes = 32_768
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  // From the registers: flush (the cache is empty while set), and range of the code.
  input  logic             flush_i,
  input  range_t           code_i,

  // From the HPUs: fetches (OBI). A fetch outside of the code returns an error.
  input  logic [Ports-1:0] req_i,
  output logic [Ports-1:0] gnt_o,
  input  logic [31:0]      address_i [Ports],
  output logic [Ports-1:0] rvalid_o,
  output logic [31:0]      rdata_o   [Ports],
  output logic [Ports-1:0] error_o,

  // To the program memory: a line. From it: its beats in ascending order, for all lines in the order of requests.
  output logic             refill_valid_o,
  input  logic             refill_ready_i,
  output logic [31:0]      refill_address_o,
  input  logic             refill_rvalid_i,
  input  logic [63:0]      refill_rdata_i,

  // For observers and counters: first miss of a line.
  output logic                miss_valid_o,
  output logic [HpuWidth-1:0] miss_hpu_o,
  output logic [31:0]         miss_address_o
);

  localparam int unsigned Sets       = Bytes / LineBytes / Ways;
  localparam int unsigned SetWidth   = Sets > 1 ? $clog2(Sets) : 1;
  localparam int unsigned WayWidth   = Ways > 1 ? $clog2(Ways) : 1;
  localparam int unsigned LineShift  = $clog2(LineBytes);
  localparam int unsigned LineWidth  = $clog2(ProgramBytes / LineBytes);
  localparam int unsigned Beats      = LineBytes / 8;
  localparam int unsigned BeatWidth  = Beats > 1 ? $clog2(Beats) : 1;
  localparam int unsigned Rows       = Bytes / 8;
  localparam int unsigned RowWidth   = $clog2(Rows);
  localparam int unsigned IndexWidth = Ports > 1 ? $clog2(Ports) : 1;
  localparam int unsigned CountWidth = $clog2(Ports + 1);

  if (LineBytes < 8) begin : gen_check_line
    $fatal(1, "a line of the instruction cache is at least a word of the program memory's port");
  end

  typedef logic [LineWidth-1:0] line_t;
  typedef struct packed {
    line_t               line;
    logic [WayWidth-1:0] way;
  } place_t;

  function automatic line_t line_of(logic [31:0] address);
    return line_t'(address >> LineShift);
  endfunction

  function automatic logic [SetWidth-1:0] set_of(line_t line);
    return SetWidth'(32'(line) % Sets);
  endfunction

  function automatic logic [RowWidth-1:0] row_of(place_t place, logic [BeatWidth-1:0] beat);
    return RowWidth'((32'(place.way) * Sets + 32'(set_of(place.line))) * Beats + 32'(beat));
  endfunction

  // Valid lines, and next way to replace in each set.
  logic [Ways-1:0]     valid_q [Sets];
  line_t               lines_q [Sets][Ways];
  logic [WayWidth-1:0] next_q  [Sets];

  // Line being filled, and its next beat.
  place_t               filling;
  logic [BeatWidth-1:0] beat_q;

  // Fetches.
  logic [Ports-1:0]    is_code, hits, misses;
  line_t               line  [Ports];
  logic [WayWidth-1:0] way   [Ports];

  assign gnt_o  = req_i & (hits | ~is_code);
  assign misses = req_i & is_code & ~hits;

  for (genvar p = 0; p < Ports; p++) begin : gen_port
    logic [Ways-1:0] hit_ways;
    logic [63:0]     data;
    logic            upper_q;

    assign line[p]    = line_of(address_i[p]);
    assign is_code[p] = address_i[p] >= code_i.address && address_i[p] - code_i.address < code_i.size;
    assign hits[p]    = !flush_i && |hit_ways;
    assign rdata_o[p] = error_o[p] ? '0 : upper_q ? data[63:32] : data[31:0];

    for (genvar w = 0; w < Ways; w++) begin : gen_way
      assign hit_ways[w] = valid_q[set_of(line[p])][w] && lines_q[set_of(line[p])][w] == line[p];
    end

    pspin_first #(
      .N(Ways)
    ) u_way (
      .bits_i (hit_ways),
      .valid_o(),
      .index_o(way[p])
    );

    pspin_sram_2p #(
      .Rows (Rows),
      .Width(64)
    ) u_data (
      .clk_i,
      .we_i   (refill_rvalid_i),
      .wrow_i (row_of(filling, beat_q)),
      .wdata_i(refill_rdata_i),
      .re_i   (req_i[p] && hits[p]),
      .rrow_i (row_of('{line: line[p], way: way[p]}, BeatWidth'(address_i[p][LineShift-1:0] >> 3))),
      .rdata_o(data)
    );

    always_ff @(posedge clk_i) begin
      upper_q    <= address_i[p][2];
      error_o[p] <= !is_code[p];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) rvalid_o <= '0;
    else rvalid_o <= gnt_o;
  end

  // Missed lines, in order: requested, filled, then valid.
  logic [Ports-1:0]      busy_q, known;
  line_t                 missed_q [Ports];
  logic [WayWidth-1:0]   ways_q   [Ports];
  logic [IndexWidth-1:0] tail_q, ask_q, fill_q, missing;
  logic [CountWidth-1:0] unasked_q;  // number of lines
  logic                  has_miss, has_way, asks, ends_fill;
  logic [SetWidth-1:0]   asked_set;

  function automatic logic [IndexWidth-1:0] after(logic [IndexWidth-1:0] index);
    return index == IndexWidth'(Ports - 1) ? '0 : index + 1'b1;
  endfunction

  always_comb begin
    known = '0;
    for (int p = 0; p < int'(Ports); p++) begin
      for (int i = 0; i < int'(Ports); i++) if (busy_q[i] && missed_q[i] == line[p]) known[p] = 1'b1;
    end
  end

  pspin_rr_arbiter #(
    .N(Ports)
  ) u_miss (
    .clk_i,
    .rst_ni,
    .requests_i(misses & ~known),
    .take_i    (miss_valid_o),
    .valid_o   (has_miss),
    .index_o   (missing)
  );

  // At most as many refills as a set has ways, so that each has a separate way.
  pspin_credit #(
    .Credits(Ways)
  ) u_ways (
    .clk_i,
    .rst_ni,
    .take_i     (asks),
    .give_i     (ends_fill),
    .available_o(has_way),
    .all_o      (),
    .count_o    ()
  );

  assign miss_valid_o     = has_miss && !busy_q[tail_q];
  assign miss_hpu_o       = HpuWidth'(missing);
  assign miss_address_o   = ProgramStart + (32'(line[missing]) << LineShift);
  assign refill_valid_o   = unasked_q != '0 && has_way;
  assign refill_address_o = ProgramStart + (32'(missed_q[ask_q]) << LineShift);
  assign asks             = refill_valid_o && refill_ready_i;
  assign asked_set        = set_of(missed_q[ask_q]);
  assign ends_fill        = refill_rvalid_i && beat_q == BeatWidth'(Beats - 1);
  assign filling          = '{line: missed_q[fill_q], way: ways_q[fill_q]};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q    <= '0;
      tail_q    <= '0;
      ask_q     <= '0;
      fill_q    <= '0;
      beat_q    <= '0;
      unasked_q <= '0;
      for (int s = 0; s < int'(Sets); s++) begin
        valid_q[s] <= '0;
        next_q[s]  <= '0;
      end
    end else begin
      unasked_q <= unasked_q + CountWidth'(miss_valid_o) - CountWidth'(asks);
      if (miss_valid_o) begin
        busy_q[tail_q] <= 1'b1;
        tail_q         <= after(tail_q);
      end
      if (asks) begin
        ask_q                                 <= after(ask_q);
        next_q[asked_set]                     <= next_q[asked_set] == WayWidth'(Ways - 1) ? '0 : next_q[asked_set] + 1'b1;
        valid_q[asked_set][next_q[asked_set]] <= 1'b0;
      end
      if (refill_rvalid_i) beat_q <= ends_fill ? '0 : beat_q + 1'b1;
      if (ends_fill) begin
        busy_q[fill_q]                             <= 1'b0;
        fill_q                                     <= after(fill_q);
        valid_q[set_of(filling.line)][filling.way] <= 1'b1;
      end
      if (flush_i) for (int s = 0; s < int'(Sets); s++) valid_q[s] <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (miss_valid_o) missed_q[tail_q] <= line[missing];
    if (asks) ways_q[ask_q] <= next_q[asked_set];
    if (ends_fill) lines_q[set_of(filling.line)][filling.way] <= filling.line;
  end

endmodule
