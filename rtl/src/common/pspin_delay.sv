// SPDX-License-Identifier: Apache-2.0
// Pipeline with a fixed latency. The receiver is always ready.
module pspin_delay #(
  parameter int unsigned Width  = 8,
  parameter int unsigned Cycles = 1   // 0: a wire
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             valid_i,
  input  logic [Width-1:0] data_i,

  output logic             valid_o,
  output logic [Width-1:0] data_o,

  output logic             empty_o    // nothing in flight or arriving
);

  if (Cycles == 0) begin : g_wire
    logic unused;
    assign unused  = clk_i ^ rst_ni;
    assign valid_o = valid_i;
    assign data_o  = data_i;
    assign empty_o = !valid_i;
  end else begin : g_pipe
    logic [Cycles-1:0] valid_q;
    logic [Width-1:0]  data_q [Cycles];

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) valid_q <= '0;
      else valid_q <= Cycles'({valid_q, valid_i});
    end

    always_ff @(posedge clk_i) begin
      if (valid_i) data_q[0] <= data_i;
      for (int unsigned i = 1; i < Cycles; i++) if (valid_q[i-1]) data_q[i] <= data_q[i-1];
    end

    assign valid_o = valid_q[Cycles-1];
    assign data_o  = data_q[Cycles-1];
    assign empty_o = !valid_i && valid_q == '0;
  end

endmodule
