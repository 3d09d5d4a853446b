// SPDX-License-Identifier: Apache-2.0
// Messages of a NIC (PsPIN III-A): the packets of a ruleset form one message until a packet ends it.
module pspin_nic_flows #(
  parameter int unsigned Rulesets = 4,
  parameter int unsigned IdWidth  = 6,   // width of message numbers
  localparam int unsigned SetWidth = Rulesets > 1 ? $clog2(Rulesets) : 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // From pspin_nic_inbound: a packet of a ruleset is complete, and belongs to a message.
  input  logic [SetWidth-1:0] packet_set_i,
  input  logic                packet_eom_i,
  input  logic                packet_take_i,
  output logic                packet_valid_o, // a number is available for its message
  output logic [IdWidth-1:0]  packet_message_o,

  // Numbers for new messages.
  input  logic                id_valid_i,
  output logic                id_take_o,
  input  logic [IdWidth-1:0]  id_i
);

  // Open message of each ruleset.
  logic [Rulesets-1:0] open_q;
  logic [IdWidth-1:0]  message_q [Rulesets];
  logic                is_open;

  assign is_open          = open_q[packet_set_i];
  assign packet_valid_o   = is_open || id_valid_i;
  assign packet_message_o = is_open ? message_q[packet_set_i] : id_i;
  assign id_take_o        = packet_take_i && !is_open;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= '0;
    else if (packet_take_i) open_q[packet_set_i] <= !packet_eom_i;
  end

  always_ff @(posedge clk_i) begin
    if (packet_take_i) message_q[packet_set_i] <= packet_message_o;
  end

endmodule
