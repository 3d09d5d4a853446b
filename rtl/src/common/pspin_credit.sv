// SPDX-License-Identifier: Apache-2.0
// A number of credits, which are taken and given back. A credit that is given back in a cycle is there in the next.
module pspin_credit #(
  parameter int unsigned Credits = 8,
  localparam int unsigned CountWidth = $clog2(Credits + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  take_i,       // only when there is one, or one is given back
  input  logic                  give_i,
  output logic                  available_o,
  output logic                  all_o,        // none is taken
  output logic [CountWidth-1:0] count_o       // that are left
);

  assign available_o = count_o != '0;
  assign all_o       = count_o == CountWidth'(Credits);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) count_o <= CountWidth'(Credits);
    else count_o <= count_o - CountWidth'(take_i) + CountWidth'(give_i);
  end

endmodule
