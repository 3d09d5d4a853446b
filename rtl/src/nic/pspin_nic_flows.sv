// SPDX-License-Identifier: Apache-2.0
// Selects packets for the unit and their messages (PsPIN III-A). Rules, of which the first match wins, examine the
// first beat of an Ethernet frame: IPv4 without options, no fragment, protocol, destination address and port. The
// packets of a rule form messages of a fixed number of packets.
//
// The driver changes a rule only while none of its messages is open.
module pspin_nic_flows
  import pspin_pkg::*;
#(
  parameter int unsigned Rules   = 4,
  parameter int unsigned IdWidth = 6,   // width of message numbers
  localparam int unsigned RuleWidth = Rules > 1 ? $clog2(Rules) : 1
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // From the driver.
  input  logic                    rule_write_i,
  input  logic [RuleWidth-1:0]    rule_index_i,
  input  nic_rule_t               rule_i,

  // From pspin_nic_inbound: first beat of a packet; the result is combinational.
  input  logic [511:0]            header_i,       // byte 0 of the packet is in the lowest bits
  input  logic [63:0]             keep_i,
  output logic                    match_o,
  output logic [RuleWidth-1:0]    match_rule_o,

  // From pspin_nic_inbound: a packet of a rule is complete, and is counted in a message.
  input  logic [RuleWidth-1:0]    packet_rule_i,
  input  logic                    packet_take_i,
  output logic                    packet_valid_o, // a number is available for its message
  output logic [IdWidth-1:0]      packet_message_o,
  output logic                    packet_eom_o,
  output logic [ContextWidth-1:0] packet_context_o,
  output logic [SizeWidth-1:0]    packet_transfer_o,

  // Numbers for new messages.
  input  logic                    id_valid_i,
  output logic                    id_take_o,
  input  logic [IdWidth-1:0]      id_i
);

  ///////////
  // Rules //
  ///////////

  nic_rule_t [Rules-1:0] rules_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) rules_q <= '0;
    else if (rule_write_i) rules_q[rule_index_i] <= rule_i;
  end

  // Header fields are big-endian.
  function automatic logic [15:0] half(logic [511:0] header, int unsigned at);
    return {header[8*at+:8], header[8*at+8+:8]};
  endfunction

  logic             is_ip;
  logic [7:0]       protocol;
  logic [15:0]      port;
  logic [31:0]      address;
  logic [Rules-1:0] fits;

  assign is_ip    = half(header_i, 12) == 16'h0800 && header_i[8*14+:8] == 8'h45 && (half(header_i, 20) & 16'h3FFF) == '0 && keep_i[33];
  assign protocol = header_i[8*23+:8];
  assign address  = {half(header_i, 30), half(header_i, 32)};
  assign port     = half(header_i, 36);

  always_comb begin
    for (int unsigned i = 0; i < Rules; i++) begin
      fits[i] = rules_q[i].is_used && is_ip && rules_q[i].protocol == protocol
              && (!rules_q[i].has_port || (rules_q[i].port == port && keep_i[37]))
              && (!rules_q[i].has_address || rules_q[i].address == address);
    end
  end

  pspin_first #(
    .N(Rules)
  ) u_first (
    .bits_i (fits),
    .valid_o(match_o),
    .index_o(match_rule_o)
  );

  //////////////
  // Messages //
  //////////////

  // Open message of each rule, and its number of packets left.
  logic [Rules-1:0]   open_q;
  logic [IdWidth-1:0] message_q [Rules];
  logic [15:0]        left_q    [Rules];
  logic [15:0]        left;
  logic               is_open;

  assign is_open           = open_q[packet_rule_i];
  assign left              = is_open ? left_q[packet_rule_i] : rules_q[packet_rule_i].packets;
  assign packet_valid_o    = is_open || id_valid_i;
  assign packet_message_o  = is_open ? message_q[packet_rule_i] : id_i;
  assign packet_eom_o      = left <= 16'd1;
  assign packet_context_o  = rules_q[packet_rule_i].execution_context;
  assign packet_transfer_o = rules_q[packet_rule_i].transfer;
  assign id_take_o         = packet_take_i && !is_open;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= '0;
    else if (packet_take_i) open_q[packet_rule_i] <= !packet_eom_o;
  end

  always_ff @(posedge clk_i) begin
    if (packet_take_i) begin
      message_q[packet_rule_i] <= packet_message_o;
      left_q[packet_rule_i]    <= left - 16'd1;
    end
  end

  // Payload, and fields that no rule examines.
  logic unused;
  assign unused = ^{header_i, keep_i};

endmodule
