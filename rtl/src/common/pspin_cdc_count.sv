// SPDX-License-Identifier: Apache-2.0
// Number of events of one clock, read in another: a Gray code passes the synchronizer.
module pspin_cdc_count #(
  parameter int unsigned Width = 32
) (
  input  logic             w_clk_i,
  input  logic             w_rst_ni,
  input  logic             w_event_i,

  input  logic             r_clk_i,
  input  logic             r_rst_ni,
  output logic [Width-1:0] r_count_o
);

  logic [Width-1:0] count_q, next, gray_q, code;

  assign next = count_q + Width'(w_event_i);

  always_ff @(posedge w_clk_i or negedge w_rst_ni) begin
    if (!w_rst_ni) begin
      count_q <= '0;
      gray_q  <= '0;
    end else begin
      count_q <= next;
      gray_q  <= next ^ (next >> 1);
    end
  end

  pspin_sync #(
    .Width(Width)
  ) u_sync (
    .clk_i (r_clk_i),
    .rst_ni(r_rst_ni),
    .data_i(gray_q),
    .data_o(code)
  );

  for (genvar i = 0; i < Width; i++) begin : gen_bit
    assign r_count_o[i] = ^(code >> i);
  end

endmodule
