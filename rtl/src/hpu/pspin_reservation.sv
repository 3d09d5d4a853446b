// SPDX-License-Identifier: Apache-2.0
// What an HPU has read by its latest load-reserved, until its next store-conditional (RISC-V Unpriv. "A" extension). A
// store-conditional takes place when the word still has this value.
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

  // For the access that the core asks for: the value that its word should have.
  output logic        expected_valid_o,
  output logic [31:0] expected_o
);

  logic        reads_q, valid_q;
  logic [31:0] addr_q, value_q;

  // The answer to a load-reserved may be here in the cycle in which its store-conditional asks.
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
