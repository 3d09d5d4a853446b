// SPDX-License-Identifier: Apache-2.0
// Reset of a clock domain: starts at once, and ends with an edge of the clock.
module pspin_reset_sync (
  input  logic clk_i,
  input  logic rst_ni,
  output logic rst_no
);

  pspin_sync u_release (
    .clk_i,
    .rst_ni,
    .data_i(1'b1),
    .data_o(rst_no)
  );

endmodule
