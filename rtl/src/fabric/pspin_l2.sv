// SPDX-License-Identifier: Apache-2.0
// Memory of the second level: the packet buffer or the handler memory (PsPIN III-C). It has two ports that read and
// write concurrently: port A for NIC and host, and port B for the DMA engines and the HPUs. Banks used together by a
// beat form a group.
//
// Arbitration of groups takes place in the cycle of a request. Priorities: writes of the DMA engines, whose time was
// fixed by their grant; the second half of an atomic operation, which starts only if no such write follows; port A,
// writes before reads; reads of the engines, for which the DMA interconnect checks busy_o; words for HPUs. The memory
// access takes the next cycle, and read data is available in the third.
module pspin_l2
  import pspin_pkg::*;
#(
  parameter logic [31:0] Start     = HandlerStart,
  parameter int unsigned Bytes     = 4194304,
  parameter int unsigned Banks     = 32,
  parameter int unsigned BankBytes = 8,
  parameter int unsigned Ports     = 2,  // 1: either port A or port B per cycle
  localparam int unsigned Groups     = Banks * BankBytes / BeatBytes,
  localparam int unsigned Rows       = Bytes / (Groups * BeatBytes),
  localparam int unsigned GroupWidth = Groups > 1 ? $clog2(Groups) : 1,
  localparam int unsigned RowWidth   = Rows > 1 ? $clog2(Rows) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  // Port A: the NIC-host interconnect. Ready depends on the address, and for reads on the write.
  input  logic              a_write_valid_i,
  output logic              a_write_ready_o,
  input  beat_request_t     a_write_i,
  input  logic              a_read_valid_i,
  output logic              a_read_ready_o,
  input  logic [31:0]       a_read_address_i,
  output logic [511:0]      a_read_data_o,     // for the read three cycles before

  // Port B: the DMA interconnect, which is never refused: it reads no busy group, and sends writes a cycle early.
  output logic [Groups-1:0] busy_o,
  input  logic              b_read_valid_i,
  input  logic [31:0]       b_read_address_i,
  output logic [511:0]      b_read_data_o,     // for the read three cycles before
  input  logic              b_write_valid_i,
  input  beat_request_t     b_write_i,

  // Port B: words for HPUs, from the PE interconnect. Ready depends on the request. Responses are in order.
  input  logic              pe_valid_i,
  output logic              pe_ready_o,
  input  word_request_t     pe_i,
  output logic              pe_rvalid_o,       // also for writes
  output logic [31:0]       pe_rdata_o
);

  if (Groups == 0 || Groups * BeatBytes != Banks * BankBytes) begin : g_too_narrow
    $fatal(1, "a row of all banks of an L2 memory holds no beat of %0d bytes", BeatBytes);
  end
  if ((Groups & (Groups - 1)) != 0 || Rows * Groups * BeatBytes != Bytes) begin : g_odd_size
    $fatal(1, "an L2 memory has a number of banks that is no power of two, or a part of a row");
  end

  typedef logic [Groups-1:0]     groups_t;
  typedef logic [GroupWidth-1:0] group_t;
  typedef logic [RowWidth-1:0]   row_t;

  function automatic group_t group_of(logic [31:0] address);
    return group_t'((address - Start) / BeatBytes % Groups);
  endfunction

  function automatic row_t row_of(logic [31:0] address);
    return row_t'((address - Start) / BeatBytes / Groups);
  endfunction

  // A memory with one shared port is a single group for conflicts.
  function automatic groups_t waits(groups_t groups);
    return Ports == 1 ? {Groups{|groups}} : groups;
  endfunction

  // ---- Cycle of the requests: users of each group, and groups taken by higher priorities.
  groups_t       a_write, a_read, b_write, b_read, b_next, hold, before_write, before_read, before_pe;
  group_t        a_write_group, a_read_group, pe_group;
  logic          takes_pe, b_writes_q;
  beat_request_t b_beat_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) b_writes_q <= 1'b0;
    else b_writes_q <= b_write_valid_i;
  end

  always_ff @(posedge clk_i) if (b_write_valid_i) b_beat_q <= b_write_i;

  assign a_write_group   = group_of(a_write_i.address);
  assign a_read_group    = group_of(a_read_address_i);
  assign pe_group        = group_of(pe_i.address);
  assign a_write         = groups_t'(a_write_valid_i) << a_write_group;
  assign a_read          = groups_t'(a_read_valid_i) << a_read_group;
  assign b_write         = groups_t'(b_writes_q) << group_of(b_beat_q.address);
  assign b_next          = waits(groups_t'(b_write_valid_i) << group_of(b_write_i.address));
  assign b_read          = groups_t'(b_read_valid_i) << group_of(b_read_address_i);
  assign before_write    = waits(b_write | hold);
  assign before_read     = waits(b_write | hold | a_write);
  assign busy_o          = waits(b_write | hold | a_write | a_read);
  assign before_pe       = waits(b_write | hold | a_write | a_read | b_read);
  assign a_write_ready_o = !before_write[a_write_group];
  assign a_read_ready_o  = !before_read[a_read_group];
  assign takes_pe        = pe_valid_i && pe_ready_o;

  // ---- Atomic operations of HPUs: read the group, and hold it in the next cycle for the write.
  typedef struct packed {
    atop_e       atop;
    logic [31:0] operand;
    logic        expected_valid;
    logic [31:0] expected;
  } operation_t;

  logic       holds_q, is_atomic;
  operation_t operation_q;
  group_t     place_q;

  assign is_atomic  = pe_i.atop != AtopNone;
  assign pe_ready_o = !holds_q && !before_pe[pe_group] && !(is_atomic && b_next[pe_group]);
  assign hold       = groups_t'(holds_q) << place_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) holds_q <= 1'b0;
    else holds_q <= takes_pe && is_atomic;
  end

  always_ff @(posedge clk_i) begin
    if (takes_pe && is_atomic) begin
      operation_q <= '{pe_i.atop, pe_i.wdata, pe_i.expected_valid, pe_i.expected};
      place_q     <= pe_group;
    end
  end

  // ---- Cycle of the memory access.
  typedef struct packed {
    row_t                 row;
    logic [BeatBytes-1:0] strobe;
    logic [511:0]         wdata;
  } beat_t;

  typedef struct packed {
    row_t        row;
    logic [3:0]  word;   // word within the beat
    logic        we;
    logic        is_sc;
    logic [3:0]  be;
    logic [31:0] wdata;
  } word_t;

  groups_t a_write_q, a_read_q, b_write_q, b_read_q, pe_q, modify_q;
  beat_t   a_data_q, b_data_q;
  row_t    a_row_q, b_row_q;
  word_t   word_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      a_write_q <= '0;
      a_read_q  <= '0;
      b_write_q <= '0;
      b_read_q  <= '0;
      pe_q      <= '0;
      modify_q  <= '0;
    end else begin
      a_write_q <= a_write & ~before_write;
      a_read_q  <= a_read & ~before_read;
      b_write_q <= b_write;
      b_read_q  <= b_read;
      pe_q      <= groups_t'(takes_pe) << pe_group;
      modify_q  <= hold;
    end
  end

  always_ff @(posedge clk_i) begin
    if (a_write_valid_i) a_data_q <= '{row_of(a_write_i.address), a_write_i.strobe, a_write_i.wdata};
    if (b_writes_q) b_data_q <= '{row_of(b_beat_q.address), b_beat_q.strobe, b_beat_q.wdata};
    if (a_read_valid_i) a_row_q <= row_of(a_read_address_i);
    if (b_read_valid_i) b_row_q <= row_of(b_read_address_i);
    if (takes_pe) begin
      word_q <= '{
          row:   row_of(pe_i.address),
          word:  pe_i.address[5:2],
          we:    pe_i.we && !is_atomic,
          is_sc: pe_i.atop == AtopSc,
          be:    pe_i.be,
          wdata: pe_i.wdata};
    end
  end

  logic [511:0] rdata [Groups];
  logic [31:0]  result;
  logic         has_failed;

  for (genvar i = 0; i < Groups; i++) begin : g_group
    logic                 req, we;
    row_t                 row;
    logic [BeatBytes-1:0] be;
    logic [511:0]         wdata;

    always_comb begin
      req   = 1'b1;
      we    = 1'b0;
      row   = word_q.row;
      be    = BeatBytes'(word_q.be) << {word_q.word, 2'b00};
      wdata = {BeatBytes / 4{word_q.wdata}};
      if (b_write_q[i]) begin
        we    = 1'b1;
        row   = b_data_q.row;
        be    = b_data_q.strobe;
        wdata = b_data_q.wdata;
      end else if (modify_q[i]) begin
        we    = !has_failed;
        be    = BeatBytes'(4'hF) << {word_q.word, 2'b00};
        wdata = {BeatBytes / 4{result}};
      end else if (a_write_q[i]) begin
        we    = 1'b1;
        row   = a_data_q.row;
        be    = a_data_q.strobe;
        wdata = a_data_q.wdata;
      end else if (a_read_q[i]) begin
        row = a_row_q;
      end else if (b_read_q[i]) begin
        row = b_row_q;
      end else begin
        req = pe_q[i];
        we  = word_q.we;
      end
    end

    pspin_sram #(
      .Rows (Rows),
      .Bytes(BeatBytes)
    ) u_sram (
      .clk_i,
      .req_i  (req),
      .we_i   (we),
      .row_i  (row),
      .be_i   (be),
      .wdata_i(wdata),
      .rdata_o(rdata[i])
    );
  end

  // ---- Cycle of the data, which is registered.
  groups_t     a_from_q, b_from_q, word_from_q;
  logic [3:0]  word_place_q;
  logic        answers_q, is_sc_q;
  logic [31:0] old;

  // Data of the group that was read.
  function automatic logic [511:0] chosen(groups_t from, logic [511:0] data [Groups]);
    chosen = '0;
    for (int unsigned i = 0; i < Groups; i++) chosen |= {512{from[i]}} & data[i];
  endfunction

  always_comb begin
    old = '0;
    for (int unsigned i = 0; i < Groups; i++) old |= {32{word_from_q[i]}} & rdata[i][word_place_q*32+:32];
  end

  assign has_failed = operation_q.atop == AtopSc && !(operation_q.expected_valid && operation_q.expected == old);

  pspin_amo_alu u_alu (
    .atop_i   (operation_q.atop),
    .old_i    (old),
    .operand_i(operation_q.operand),
    .new_o    (result)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      answers_q   <= 1'b0;
      pe_rvalid_o <= 1'b0;
    end else begin
      answers_q   <= pe_q != '0;
      pe_rvalid_o <= answers_q;
    end
  end

  always_ff @(posedge clk_i) begin
    a_from_q     <= a_read_q;
    b_from_q     <= b_read_q;
    word_from_q  <= pe_q;
    word_place_q <= word_q.word;
    is_sc_q      <= word_q.is_sc;
    if (a_from_q != '0) a_read_data_o <= chosen(a_from_q, rdata);
    if (b_from_q != '0) b_read_data_o <= chosen(b_from_q, rdata);
    if (answers_q) pe_rdata_o <= is_sc_q ? 32'(has_failed) : old;
  end

endmodule
