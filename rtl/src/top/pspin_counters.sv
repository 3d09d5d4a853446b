// SPDX-License-Identifier: Apache-2.0
// Counters of the unit, for the registers. A freeze copies all of them in one cycle, so that the driver reads a
// consistent snapshot.
module pspin_counters #(
  parameter int unsigned N     = 8,
  parameter int unsigned Width = 48,  // width of a counter: three days at 1 GHz and one event per cycle
  parameter int unsigned Step  = 1,   // width of the increment of a cycle
  localparam int unsigned IndexWidth = N > 1 ? $clog2(N) : 1
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // Events of this cycle.
  input  logic [N-1:0][Step-1:0]  add_i,

  // From the registers: index to read, as of the latest freeze, including one in this cycle.
  input  logic                    freeze_i,
  input  logic [IndexWidth-1:0]   index_i,
  output logic [63:0]             value_o
);

  logic [N-1:0][Width-1:0] counts_q, frozen_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      counts_q <= '0;
      frozen_q <= '0;
    end else begin
      for (int unsigned i = 0; i < N; i++) counts_q[i] <= counts_q[i] + Width'(add_i[i]);
      if (freeze_i) frozen_q <= counts_q;
    end
  end

  assign value_o = 64'(freeze_i ? counts_q[index_i] : frozen_q[index_i]);

endmodule
