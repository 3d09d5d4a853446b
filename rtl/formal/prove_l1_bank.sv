// SPDX-License-Identifier: Apache-2.0
// Operations on a bank of L1 are atomic: a word has the value of all stores and operations in order of acceptance, and
// each load and operation returns the value before it. One word is watched.
module prove_l1_bank
  import pspin_pkg::*;
(
  input logic        clk_i,
  input logic        rst_ni,
  input logic        req_i,
  input logic        we_i,
  input atop_e       atop_i,
  input logic        row_i,
  input logic [3:0]  be_i,
  input logic [31:0] wdata_i,
  input logic        expected_valid_i,
  input logic [31:0] expected_i
);

  logic        gnt, rvalid, live_q = 1'b0;
  logic [31:0] rdata;

  pspin_l1_bank #(
    .Rows(2)
  ) u_bank (
    .clk_i,
    .rst_ni,
    .req_i,
    .gnt_o   (gnt),
    .we_i,
    .atop_i,
    .row_i,
    .be_i,
    .wdata_i,
    .expected_valid_i,
    .expected_i,
    .rvalid_o(rvalid),
    .rdata_o (rdata)
  );

  function automatic logic [31:0] merge(logic [31:0] word, logic [3:0] be, logic [31:0] data);
    for (int unsigned i = 0; i < 4; i++) merge[8*i+:8] = be[i] ? data[8*i+:8] : word[8*i+:8];
  endfunction

  // Expected value of row 0.
  logic [31:0] word_q, computed;
  logic        takes, operates, fails;
  assign takes    = req_i && gnt && row_i == 1'b0;
  assign operates = takes && atop_i != AtopNone;
  assign fails    = atop_i == AtopSc && !(expected_valid_i && expected_i == word_q);

  pspin_amo_alu u_alu (
    .atop_i,
    .old_i    (word_q),
    .operand_i(wdata_i),
    .new_o    (computed)
  );

  // Expected responses, one and two cycles after the request.
  logic        loads_q, operates_q, answers_q;
  logic [31:0] loaded_q, found_q, answer_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      loads_q    <= 1'b0;
      operates_q <= 1'b0;
      answers_q  <= 1'b0;
    end else begin
      loads_q    <= takes && !we_i && !operates;
      operates_q <= operates;
      answers_q  <= operates_q;
    end
  end

  always_ff @(posedge clk_i) begin
    live_q   <= 1'b1;
    loaded_q <= word_q;
    found_q  <= atop_i == AtopSc ? 32'(fails) : word_q;
    answer_q <= found_q;
    if (operates) word_q <= fails ? word_q : computed;
    else if (takes && we_i) word_q <= merge(word_q, be_i, wdata_i);
  end

  // Environment: no requests during reset, and arbitrary contents of the memory.
  always_comb begin
    if (live_q) assume (rst_ni);
    else assume (word_q == u_bank.u_sram.rows[0]);
    assume (rst_ni || !req_i);
  end

  logic writes;  // result of an operation on the word, in this cycle
  assign writes = u_bank.modifies_q && u_bank.atomic_q.row == 1'b0;

  always_comb begin
    if (rst_ni) begin
      if (loads_q) assert (rvalid && rdata == loaded_q);
      if (answers_q) assert (rvalid && rdata == answer_q);

      // Contents of the memory, and writes to it; these make the properties inductive.
      assert (word_q == (writes && !u_bank.has_failed ? u_bank.result : u_bank.u_sram.rows[0]));
      assert (operates_q == writes);
      if (u_bank.modifies_q) assert (u_bank.read == u_bank.u_sram.rows[u_bank.atomic_q.row]);
      if (operates_q) assert (found_q == (u_bank.atomic_q.atop == AtopSc ? 32'(u_bank.has_failed) : u_bank.read));
      if (answers_q) assert (u_bank.answers_late_q && u_bank.late_q == answer_q);
      if (loads_q) assert (u_bank.answers_q && !u_bank.answers_late_q && u_bank.read == loaded_q);
    end
  end

endmodule
