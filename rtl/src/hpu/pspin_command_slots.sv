// SPDX-License-Identifier: Apache-2.0
// In-flight commands of an HPU (PsPIN III-B2): each has a slot from its issue until its response. One more waits for
// the command unit. A handler knows its command by the slot, in the low 8 bits, and the slot's use count.
module pspin_command_slots
  import pspin_pkg::*;
#(
  parameter int unsigned Slots      = 4,
  parameter int unsigned PlaceWidth = 5
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // From the driver: a command of the task in a slot of the cluster. It is accepted when ready, and gets this number.
  input  logic                  issue_valid_i,
  output logic                  issue_ready_o,
  input  command_t              issue_i,
  input  logic [PlaceWidth-1:0] place_i,
  output logic [31:0]           number_o,

  // Query: set if the command of this number is complete. A number never issued is.
  input  logic [31:0]           query_i,
  output logic                  is_done_o,

  // A task failed: the data of its commands is discarded.
  input  logic                  fails_i,
  input  logic [PlaceWidth-1:0] failed_place_i,

  // Set if commands of the task in this slot are in flight.
  input  logic [PlaceWidth-1:0] fed_back_place_i,
  output logic                  in_flight_o,
  output logic                  any_in_flight_o,

  // To the arbiters of cluster and unit.
  output logic                  command_valid_o,
  input  logic                  command_ready_i,
  output command_t              command_o,

  // From the command unit: a response for this HPU, and the slot of the issuing task.
  input  logic                  response_valid_i,
  input  logic [SlotWidth-1:0]  response_slot_i,
  output logic [PlaceWidth-1:0] response_place_o,

  // To the engines that read data from the host.
  output logic [Slots-1:0]      orphans_o
);

  localparam int unsigned UsesWidth = 24;  // width of the use count in a number

  logic [Slots-1:0]      busy_q, orphan_q, responds, busy, fails, takes;
  logic [PlaceWidth-1:0] place_q [Slots];
  logic [UsesWidth-1:0]  uses_q  [Slots];
  logic                  waits_q, issues;
  logic [SlotWidth-1:0]  free;
  command_t              command_q;

  // A response is visible in the cycle of its arrival.
  always_comb begin
    for (int unsigned i = 0; i < Slots; i++) responds[i] = response_valid_i && response_slot_i == SlotWidth'(i);
  end
  assign busy = busy_q & ~responds;

  always_comb begin
    free = '0;
    for (int unsigned i = Slots; i > 0; i--) if (!busy[i-1]) free = SlotWidth'(i - 1);
  end

  assign issue_ready_o = !waits_q && !(&busy);
  assign issues        = issue_valid_i && issue_ready_o;

  // The core's query is separate from its actions, which may depend on the answer.
  always_comb begin
    number_o  = '0;
    is_done_o = 1'b1;
    for (int unsigned i = 0; i < Slots; i++) begin
      if (free == SlotWidth'(i)) number_o = {uses_q[i] + UsesWidth'(responds[i]), 8'(i)};
      if (query_i == {uses_q[i], 8'(i)} && busy[i]) is_done_o = 1'b0;
    end
  end

  always_comb begin
    response_place_o = '0;
    for (int unsigned i = 0; i < Slots; i++) if (responds[i]) response_place_o = place_q[i];
  end

  always_comb begin
    in_flight_o = 1'b0;
    for (int unsigned i = 0; i < Slots; i++) begin
      if (busy_q[i] && place_q[i] == fed_back_place_i) in_flight_o = 1'b1;
    end
  end

  for (genvar i = 0; i < Slots; i++) begin : gen_slot
    assign takes[i] = issues && free == SlotWidth'(i);
    assign fails[i] = fails_i && busy[i] && place_q[i] == failed_place_i;
  end

  assign any_in_flight_o = |busy_q;
  assign command_valid_o = waits_q;
  assign command_o       = command_q;
  assign orphans_o       = orphan_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q   <= '0;
      orphan_q <= '0;
      waits_q  <= 1'b0;
      for (int unsigned i = 0; i < Slots; i++) uses_q[i] <= '0;
    end else begin
      busy_q   <= busy | takes;
      orphan_q <= (orphan_q & busy) | fails;
      waits_q  <= issues || (waits_q && !command_ready_i);
      for (int unsigned i = 0; i < Slots; i++) if (responds[i]) uses_q[i] <= uses_q[i] + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (issues) begin
      command_q      <= issue_i;
      command_q.slot <= free;
    end
    for (int unsigned i = 0; i < Slots; i++) if (takes[i]) place_q[i] <= place_i;
  end

endmodule
