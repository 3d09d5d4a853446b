// SPDX-License-Identifier: Apache-2.0
// Events of an HPU driver: bound, simulation only. Event numbers are those of crates/card/pspin-rtl/src/events.rs.
module pspin_observe_driver
  import pspin_pkg::*;
(
  input logic       clk_i,
  input logic       rst_ni,
  input hpu_id_t    id_i,
  input logic       assign_valid_i,
  input logic [7:0] assign_place_i,
  input logic       starts_i,
  input logic       ends_i,
  input logic       has_task_i,
  input outcome_t   outcome_i,
  input logic       misuse_i,
  input range_t     misused_i,
  input logic       response_valid_i,
  input response_t  response_i
);

  import "DPI-C" function void pspin_event(
    input int kind, input int unit, input int a, input int b, input int c, input int d, input int e);

  localparam int Assigned = 18, Start = 19, End = 20, Response = 23;

  // The outcome of a wrong command lacks its number of bytes.
  logic [31:0] misused_q;

  always_ff @(posedge clk_i) begin
    if (misuse_i) misused_q <= misused_i.size;
    if (rst_ni) begin
      if (response_valid_i && response_i.hpu == id_i) begin
        pspin_event(Response, 32'(id_i), 32'(response_i.slot), 32'(response_i.is_refused), 0, 0, 0);
      end
      // Without a task, the program itself failed during its start.
      if (ends_i && (has_task_i || outcome_i.kind != EndDone)) begin
        pspin_event(End, 32'(id_i), 32'({has_task_i, 8'(outcome_i.cause), 8'(outcome_i.kind)}), misused_q, outcome_i.pc,
                    outcome_i.address[31:0], outcome_i.address[63:32]);
      end
      if (starts_i) pspin_event(Start, 32'(id_i), 0, 0, 0, 0, 0);
      if (assign_valid_i) pspin_event(Assigned, 32'(id_i), 32'(assign_place_i), 0, 0, 0, 0);
    end
  end

  logic unused;
  assign unused = ^{response_i, misused_i};

endmodule

bind pspin_hpu_driver pspin_observe_driver u_observe (
  .clk_i,
  .rst_ni,
  .id_i,
  .assign_valid_i,
  .assign_place_i  (8'(assign_place_i)),
  .starts_i        (start_o),
  .ends_i          (end_o),
  .has_task_i      (has_task_q),
  .outcome_i       (end_outcome_o),
  .misuse_i        (misuse_o),
  .misused_i       (source_o),
  .response_valid_i,
  .response_i
);
