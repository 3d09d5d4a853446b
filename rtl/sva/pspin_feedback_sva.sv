// SPDX-License-Identifier: Apache-2.0
// Guarantees for the NIC and the status unit: offers are stable until accepted; and coverage.
module pspin_feedback_sva
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters = 4
) (
  input logic              clk_i,
  input logic              rst_ni,
  input logic              feedback_valid_o,
  input logic              feedback_ready_i,
  input feedback_t         feedback_o,
  input logic              failed_valid_o,
  input logic              failed_ready_i,
  input completion_t       failed_o,
  input logic              valid,
  input logic              leaves,
  input logic              has_failed,
  input logic              reported_q,
  input logic [Clusters+1:0] requests
);

  logic        feedback_waits_q, failed_waits_q;
  feedback_t   feedback_q;
  completion_t failed_q;
  logic        is_feedback_stable, is_failed_stable;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      feedback_waits_q <= 1'b0;
      failed_waits_q   <= 1'b0;
    end else begin
      feedback_waits_q <= feedback_valid_o && !feedback_ready_i;
      failed_waits_q   <= failed_valid_o && !failed_ready_i;
    end
  end

  always_ff @(posedge clk_i) begin
    feedback_q <= feedback_o;
    failed_q   <= failed_o;
  end

  assign is_feedback_stable = !feedback_waits_q || (feedback_valid_o && feedback_o == feedback_q);
  assign is_failed_stable   = !failed_waits_q || (failed_valid_o && failed_o == failed_q);

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_feedback_stable: assert (is_feedback_stable);
      a_failed_stable: assert (is_failed_stable);
    end
  end

  c_all_ask: cover property (@(posedge clk_i) &requests);
  c_held: cover property (@(posedge clk_i) feedback_valid_o && !feedback_ready_i);
  c_status_first: cover property (@(posedge clk_i) valid && has_failed && reported_q && leaves);
  c_status_waits: cover property (@(posedge clk_i) failed_valid_o && !failed_ready_i);
  c_no_feedback: cover property (@(posedge clk_i) leaves && valid && !feedback_valid_o);

endmodule

bind pspin_feedback pspin_feedback_sva #(
  .Clusters(Clusters)
) u_sva (
  .clk_i,
  .rst_ni,
  .feedback_valid_o,
  .feedback_ready_i,
  .feedback_o,
  .failed_valid_o,
  .failed_ready_i,
  .failed_o,
  .valid,
  .leaves,
  .has_failed,
  .reported_q,
  .requests
);
