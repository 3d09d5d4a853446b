// SPDX-License-Identifier: Apache-2.0
// Credit counter. A returned credit is available in the next cycle.
module pspin_credit #(
  parameter int unsigned Credits = 8,
  localparam int unsigned CountWidth = $clog2(Credits + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  take_i,       // only when one is left, or returned
  input  logic                  give_i,
  output logic                  available_o,
  output logic                  all_o,        // no credit is taken
  output logic [CountWidth-1:0] count_o       // credits left
);

  assign available_o = count_o != '0;
  assign all_o       = count_o == CountWidth'(Credits);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) count_o <= CountWidth'(Credits);
    else count_o <= count_o - CountWidth'(take_i) + CountWidth'(give_i);
  end

endmodule
