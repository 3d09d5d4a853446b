// SPDX-License-Identifier: Apache-2.0
// Queue of Depth entries with fall-through: an entry stays at least Cycles cycles, which may be 0. Ready does not
// depend on the other side.
module pspin_fallthrough #(
  parameter int unsigned Width  = 8,
  parameter int unsigned Depth  = 1,
  parameter int unsigned Cycles = 0
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  // From the sender.
  input  logic             valid_i,
  output logic             ready_o,
  input  logic [Width-1:0] data_i,

  // To the receiver.
  output logic             valid_o,
  input  logic             ready_i,
  output logic [Width-1:0] data_o,

  output logic             empty_o   // before the arriving entry
);

  localparam int unsigned CountWidth = $clog2(Depth + 1);

  logic                  push, pop, ripens, fifo_valid;
  logic [Width-1:0]      fifo_data;
  logic [CountWidth-1:0] count, ripe_q, ripe;

  // The first `ripe` entries have waited long enough.
  assign ripe    = ripe_q + CountWidth'(ripens);
  assign valid_o = ripe != '0;
  assign push    = valid_i && ready_o;
  assign pop     = valid_o && ready_i;
  assign data_o  = fifo_valid ? fifo_data : data_i;
  assign empty_o = count == '0;

  logic unused_data, unused_empty;

  pspin_delay #(
    .Width (1),
    .Cycles(Cycles)
  ) u_time (
    .clk_i,
    .rst_ni,
    .valid_i(push),
    .data_i (1'b0),
    .valid_o(ripens),
    .data_o (unused_data),
    .empty_o(unused_empty)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ripe_q <= '0;
    else ripe_q <= ripe - CountWidth'(pop);
  end

  // An entry that passes at once is never stored.
  logic fifo_ready;

  pspin_fifo #(
    .Width(Width),
    .Depth(Depth)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .valid_i(push && !(pop && !fifo_valid)),
    .ready_o(fifo_ready),
    .data_i,
    .valid_o(fifo_valid),
    .ready_i(pop),
    .data_o (fifo_data),
    .count_o(count)
  );

  assign ready_o = fifo_ready;

endmodule
