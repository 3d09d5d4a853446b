// SPDX-License-Identifier: Apache-2.0
// AXI4-Lite port of the driver on the host: register accesses, one at a time. A write must have all byte strobes set;
// otherwise it returns SLVERR, and nothing is written. Concurrent writes and reads alternate.
module pspin_axi_lite (
  input  logic        clk_i,
  input  logic        rst_ni,

  // The driver on the host.
  input  logic        aw_valid_i,
  output logic        aw_ready_o,
  input  logic [15:0] aw_addr_i,
  input  logic        w_valid_i,
  output logic        w_ready_o,
  input  logic [31:0] w_data_i,
  input  logic [3:0]  w_strb_i,
  output logic        b_valid_o,
  input  logic        b_ready_i,
  output logic [1:0]  b_resp_o,
  input  logic        ar_valid_i,
  output logic        ar_ready_o,
  input  logic [15:0] ar_addr_i,
  output logic        r_valid_o,
  input  logic        r_ready_i,
  output logic [31:0] r_data_o,
  output logic [1:0]  r_resp_o,

  // pspin_regs, which responds in the next cycle.
  output logic        ctrl_valid_o,
  output logic        ctrl_we_o,
  output logic [15:0] ctrl_address_o,
  output logic [31:0] ctrl_wdata_o,
  input  logic        ctrl_rvalid_i,
  input  logic [31:0] ctrl_rdata_i
);

  localparam logic [1:0] Okay     = 2'b00;
  localparam logic [1:0] SlaveErr = 2'b10;

  logic could_write, could_read, writes, reads, wrote_q, reading_q;

  // A read keeps its turn until the registers respond.
  assign could_write = aw_valid_i && w_valid_i && !b_valid_o;
  assign could_read  = ar_valid_i && !r_valid_o && !reading_q;
  assign writes      = could_write && !(could_read && wrote_q);
  assign reads       = could_read && !writes;

  assign aw_ready_o     = writes;
  assign w_ready_o      = writes;
  assign ar_ready_o     = reads;
  assign ctrl_valid_o   = reads || (writes && w_strb_i == 4'hF);
  assign ctrl_we_o      = writes;
  assign ctrl_address_o = writes ? aw_addr_i : ar_addr_i;
  assign ctrl_wdata_o   = w_data_i;
  assign r_resp_o       = Okay;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wrote_q   <= 1'b0;
      reading_q <= 1'b0;
      b_valid_o <= 1'b0;
      r_valid_o <= 1'b0;
    end else begin
      if (writes || reads) wrote_q <= writes;
      reading_q <= reads;
      b_valid_o <= writes || (b_valid_o && !b_ready_i);
      r_valid_o <= (reading_q && ctrl_rvalid_i) || (r_valid_o && !r_ready_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (writes) b_resp_o <= w_strb_i == 4'hF ? Okay : SlaveErr;
    if (reading_q) r_data_o <= ctrl_rdata_i;
  end

endmodule
