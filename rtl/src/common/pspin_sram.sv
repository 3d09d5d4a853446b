// SPDX-License-Identifier: Apache-2.0
// Single-port memory: reads or writes one row per cycle. Synthesis replaces it by a macro of the technology.
module pspin_sram #(
  parameter int unsigned Rows  = 256,
  parameter int unsigned Bytes = 4,
  localparam int unsigned RowWidth = Rows > 1 ? $clog2(Rows) : 1
) (
  input  logic                  clk_i,
  input  logic                  req_i,
  input  logic                  we_i,
  input  logic [RowWidth-1:0]   row_i,
  input  logic [Bytes-1:0]      be_i,
  input  logic [Bytes*8-1:0]    wdata_i,
  output logic [Bytes*8-1:0]    rdata_o    // for the read in the cycle before
);

  logic [Bytes*8-1:0] rows [Rows]  /* verilator public_flat_rw */;

  // Keep the loop rolled in a simulator's code, of which wide memories would be the largest part. No function here: a
  // simulator would duplicate it for each instance of the memory.
  always_ff @(posedge clk_i) begin : access
    logic [Bytes*8-1:0] row;
    if (req_i) begin
      if (we_i) begin
        row = rows[row_i];
        /* verilator unroll_disable */
        for (int unsigned i = 0; i < Bytes; i++) if (be_i[i]) row[i*8+:8] = wdata_i[i*8+:8];
        rows[row_i] <= row;
      end else begin
        rdata_o <= rows[row_i];
      end
    end
  end

endmodule
