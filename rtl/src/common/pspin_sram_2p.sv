// SPDX-License-Identifier: Apache-2.0
// Memory with a read port and a write port. A read of a row during its write returns undefined data, because macros
// differ: its result must not be used. Synthesis replaces it by a macro of the technology.
module pspin_sram_2p #(
  parameter int unsigned Rows  = 16,
  parameter int unsigned Width = 8,
  localparam int unsigned RowWidth = Rows > 1 ? $clog2(Rows) : 1
) (
  input  logic                clk_i,

  input  logic                we_i,
  input  logic [RowWidth-1:0] wrow_i,
  input  logic [Width-1:0]    wdata_i,

  input  logic                re_i,
  input  logic [RowWidth-1:0] rrow_i,
  output logic [Width-1:0]    rdata_o   // for the latest read
);

  logic [Width-1:0] rows [Rows];

  always_ff @(posedge clk_i) begin
    if (we_i) rows[wrow_i] <= wdata_i;
    if (re_i) rdata_o <= rows[rrow_i];
  end

endmodule
