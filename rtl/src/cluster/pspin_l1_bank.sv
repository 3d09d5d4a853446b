// SPDX-License-Identifier: Apache-2.0
// Bank of L1 with atomic operations (PsPIN III-C). A load or store takes the bank for a cycle and is answered in the
// next. An atomic operation takes two cycles, a read and the write of the result, and is answered in the third.
//
// A store-conditional writes if the word still has the value read by the same HPU's load-reserved; the HPU remembers it
// and sends it along.
module pspin_l1_bank
  import pspin_pkg::*;
#(
  parameter int unsigned Rows = 4096,
  localparam int unsigned RowWidth = Rows > 1 ? $clog2(Rows) : 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // From the interconnect of the cluster: a request is accepted when the bank is ready. Beats are sent only then.
  input  logic                req_i,
  output logic                gnt_o,
  input  logic                we_i,
  input  atop_e               atop_i,
  input  logic [RowWidth-1:0] row_i,
  input  logic [3:0]          be_i,
  input  logic [31:0]         wdata_i,
  input  logic                expected_valid_i,
  input  logic [31:0]         expected_i,

  // To the interconnect.
  output logic                rvalid_o,
  output logic [31:0]         rdata_o
);

  typedef struct packed {
    atop_e               atop;
    logic [RowWidth-1:0] row;
    logic [31:0]         operand;
    logic                expected_valid;
    logic [31:0]         expected;
  } atomic_t;

  logic    is_atomic, modifies_q, answers_q, answers_late_q, has_failed;
  atomic_t atomic_q;
  logic [31:0] read, result, late_q;

  assign is_atomic  = atop_i != AtopNone;
  assign gnt_o      = !modifies_q;
  assign has_failed = atomic_q.atop == AtopSc && !(atomic_q.expected_valid && atomic_q.expected == read);

  pspin_amo_alu u_alu (
    .atop_i   (atomic_q.atop),
    .old_i    (read),
    .operand_i(atomic_q.operand),
    .new_o    (result)
  );

  pspin_sram #(
    .Rows (Rows),
    .Bytes(4)
  ) u_sram (
    .clk_i,
    .req_i  (modifies_q ? !has_failed : req_i),
    .we_i   (modifies_q || (we_i && !is_atomic)),
    .row_i  (modifies_q ? atomic_q.row : row_i),
    .be_i   (modifies_q ? 4'hF : be_i),
    .wdata_i(modifies_q ? result : wdata_i),
    .rdata_o(read)
  );

  assign rvalid_o = answers_q || answers_late_q;
  assign rdata_o  = answers_late_q ? late_q : read;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      modifies_q     <= 1'b0;
      answers_q      <= 1'b0;
      answers_late_q <= 1'b0;
    end else begin
      modifies_q     <= req_i && gnt_o && is_atomic;
      answers_q      <= req_i && gnt_o && !is_atomic;
      answers_late_q <= modifies_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (req_i && gnt_o && is_atomic) atomic_q <= '{atop_i, row_i, wdata_i, expected_valid_i, expected_i};
    if (modifies_q) late_q <= atomic_q.atop == AtopSc ? 32'(has_failed) : read;
  end

endmodule
