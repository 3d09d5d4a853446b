// SPDX-License-Identifier: Apache-2.0
// The queue between two clocks neither loses, repeats nor reorders entries, for clocks with edges at any time. The
// entries are numbered; the reader sees their numbers in order.
module prove_cdc_fifo #(
  parameter int unsigned Depth = 4
) (
  input logic rst_ni,
  input logic w_clk_i,
  input logic w_valid_i,
  input logic r_clk_i,
  input logic r_ready_i
);

  localparam int unsigned Width = $clog2(Depth) + 1;
  typedef logic [Width-1:0] number_t;

  logic    w_ready, r_valid;
  number_t data, pushed_q, popped_q;

  pspin_cdc_fifo #(
    .Width(Width),
    .Depth(Depth)
  ) u_fifo (
    .w_clk_i,
    .w_rst_ni (rst_ni),
    .w_valid_i,
    .w_ready_o(w_ready),
    .w_data_i (pushed_q),
    .r_clk_i,
    .r_rst_ni (rst_ni),
    .r_valid_o(r_valid),
    .r_ready_i,
    .r_data_o (data)
  );

  always_ff @(posedge w_clk_i or negedge rst_ni) begin
    if (!rst_ni) pushed_q <= '0;
    else pushed_q <= pushed_q + number_t'(w_valid_i && w_ready);
  end

  always_ff @(posedge r_clk_i or negedge rst_ni) begin
    if (!rst_ni) popped_q <= '0;
    else popped_q <= popped_q + number_t'(r_valid && r_ready_i);
  end

  function automatic number_t gray(number_t number);
    return number ^ (number >> 1);
  endfunction

  function automatic number_t number(number_t code);
    number_t value;
    value = code;
    for (int i = 1; i < int'(Width); i++) value ^= code >> i;
    return value;
  endfunction

  // Each sampled pointer is a value that the pointer had: newer ones are nearer to it.
  number_t held, unread, unread_meta, free, free_meta;

  assign held      = pushed_q - popped_q;
  assign unread      = number(u_fifo.u_to_reader.stable_q) - popped_q;
  assign unread_meta = number(u_fifo.u_to_reader.meta_q) - popped_q;
  assign free        = pushed_q - number(u_fifo.u_to_writer.stable_q);
  assign free_meta   = pushed_q - number(u_fifo.u_to_writer.meta_q);

  always_comb begin
    assert (u_fifo.w_pointer_q == pushed_q);
    assert (u_fifo.r_pointer_q == popped_q);
    assert (u_fifo.w_gray_q == gray(pushed_q));
    assert (u_fifo.r_gray_q == gray(popped_q));
    assert (held <= Depth);
    assert (unread <= unread_meta);
    assert (unread_meta <= held);
    assert (held <= free_meta);
    assert (free_meta <= free);
    assert (free <= Depth);
    for (int i = 0; i < int'(Depth); i++) begin
      if (number_t'(i) < held) assert (u_fifo.entries_q[(popped_q + number_t'(i)) % Depth] == popped_q + number_t'(i));
    end
    assert (!r_valid || held != '0);
    assert (!w_ready || held < Depth);
    assert (!r_valid || data == popped_q);
  end

endmodule
