// SPDX-License-Identifier: Apache-2.0
// Value read by an HPU's latest load-reserved, until its next store-conditional (RISC-V Unpriv. "A" extension). A
// store-conditional takes place if the word still has this value.
module pspin_reservation
  import pspin_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,

  // The data port of the core.
  input  logic        req_i,
  input  logic        gnt_i,
  input  atop_e       atop_i,
  input  logic [31:0] addr_i,
  input  logic        rvalid_i,
  input  logic [31:0] rdata_i,

  // For the access requested by the core: the expected value of its word.
  output logic        expected_valid_o,
  output logic [31:0] expected_o
);

  logic        reads_q, valid_q;
  logic [31:0] addr_q, value_q;

  // The response to a load-reserved may arrive in the cycle of its store-conditional's request.
  logic        valid;
  logic [31:0] value;
  assign valid            = valid_q || (reads_q && rvalid_i);
  assign value            = (reads_q && rvalid_i) ? rdata_i : value_q;
  assign expected_valid_o = valid && addr_q == addr_i;
  assign expected_o       = value;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      reads_q <= 1'b0;
      valid_q <= 1'b0;
    end else if (req_i && gnt_i) begin
      reads_q <= atop_i == AtopLr;
      valid_q <= valid && atop_i != AtopSc && atop_i != AtopLr;
    end else if (rvalid_i) begin
      reads_q <= 1'b0;
      valid_q <= valid;
    end
  end

  always_ff @(posedge clk_i) begin
    value_q <= value;
    if (req_i && gnt_i && atop_i == AtopLr) addr_q <= addr_i;
  end

endmodule
