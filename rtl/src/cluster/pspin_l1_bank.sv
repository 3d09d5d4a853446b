// A bank of L1 with atomic operations (PsPIN III-C). A load or store takes the bank for a cycle and is answered in the next. An
// atomic operation takes it for two: it reads, and writes the result in the cycle after. It is answered in the third.
//
// A beat does not wait: an atomic operation that is about to write does so in the next cycle without a beat. A beat that reads finds
// the word as it was before, and bytes that a beat writes to it meanwhile stay as they are.
//
// A store-conditional writes when the word still has the value that the load-reserved of the same HPU has read; the HPU remembers
// it and sends it along.
module pspin_l1_bank
  import pspin_pkg::*;
#(
  parameter int unsigned Rows = 4096,
  localparam int unsigned RowWidth = Rows > 1 ? $clog2(Rows) : 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // From the interconnect of the cluster: a request is taken when the bank is ready, and that of a beat always.
  input  logic                req_i,
  output logic                gnt_o,
  input  logic                beat_i,
  input  logic                we_i,
  input  atop_e               atop_i,
  input  logic [RowWidth-1:0] row_i,
  input  logic [3:0]          be_i,
  input  logic [31:0]         wdata_i,
  input  logic                expected_valid_i,
  input  logic [31:0]         expected_i,

  // To the interconnect.
  output logic                rvalid_o,
  output logic [31:0]         rdata_o,
  output logic [31:0]         beat_rdata_o   // of the beat in the cycle before
);

  logic                is_atomic, takes_beat, starts, writes;
  logic                answers_q, answers_late_q;
  logic                has_read_q;      // the word of an atomic operation has been read
  logic                modifies_q;      // its result is to be written
  atop_e               atop_q;
  logic [RowWidth-1:0] row_q;
  logic [31:0]         operand_q;       // and, when a beat was in the way, the result
  logic [3:0]          be_q;            // of the result
  logic                expected_valid_q;
  logic [31:0]         expected_q;
  logic [31:0]         read, computed, result, late_q;
  logic                has_failed;
  logic [3:0]          be;

  assign is_atomic  = atop_i != AtopNone;
  assign takes_beat = req_i && beat_i;
  assign gnt_o      = !modifies_q;
  assign starts     = req_i && gnt_o && is_atomic;
  assign writes     = modifies_q && !takes_beat;
  assign has_failed = atop_q == AtopSc && !(expected_valid_q && expected_q == read);

  pspin_amo_alu u_alu (
    .atop_i   (atop_q),
    .old_i    (read),
    .operand_i(operand_q),
    .new_o    (computed)
  );

  assign result = has_read_q ? computed : operand_q;
  assign be     = has_read_q ? (has_failed ? 4'h0 : 4'hF) : be_q;

  pspin_sram #(
    .Rows (Rows),
    .Bytes(4)
  ) u_sram (
    .clk_i,
    .req_i  (writes || req_i),
    .we_i   (writes || (we_i && !is_atomic)),
    .row_i  (writes ? row_q : row_i),
    .be_i   (writes ? be : be_i),
    .wdata_i(writes ? result : wdata_i),
    .rdata_o(read)
  );

  assign rvalid_o     = answers_q || answers_late_q;
  assign rdata_o      = answers_late_q ? late_q : read;
  assign beat_rdata_o = read;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      has_read_q     <= 1'b0;
      modifies_q     <= 1'b0;
      answers_q      <= 1'b0;
      answers_late_q <= 1'b0;
    end else begin
      has_read_q     <= starts;
      modifies_q     <= starts || (modifies_q && takes_beat);
      answers_q      <= req_i && gnt_o && !beat_i && !is_atomic;
      answers_late_q <= has_read_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (starts) begin
      atop_q           <= atop_i;
      row_q            <= row_i;
      operand_q        <= wdata_i;
      expected_valid_q <= expected_valid_i;
      expected_q       <= expected_i;
    end else if (modifies_q) begin
      operand_q <= result;
      be_q      <= we_i && row_i == row_q ? be & ~be_i : be;
    end
    if (has_read_q) late_q <= atop_q == AtopSc ? 32'(has_failed) : read;
  end

endmodule
