// SPDX-License-Identifier: Apache-2.0
// Outbound engine of a NIC (PsPIN III-C, Flow 3): sends packets of handlers and of the host to the network, round robin
// per packet. A handler's packet is a complete frame; an empty one is not sent.
module pspin_nic_outbound
  import pspin_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,

  // From the unit.
  input  logic         send_valid_i,
  output logic         send_ready_o,
  input  command_t     send_command_i,
  input  logic [511:0] send_data_i,
  input  logic [6:0]   send_bytes_i,
  input  logic         send_last_i,

  // From the host: AXI-Stream.
  input  logic         host_valid_i,
  output logic         host_ready_o,
  input  logic [511:0] host_data_i,
  input  logic [63:0]  host_keep_i,
  input  logic         host_last_i,
  input  logic [31:0]  host_dest_i,

  // To the network: AXI-Stream; dest is the node named by the command.
  output logic         tx_valid_o,
  input  logic         tx_ready_i,
  output logic [511:0] tx_data_o,
  output logic [63:0]  tx_keep_o,
  output logic         tx_last_o,
  output logic [31:0]  tx_dest_o,

  // To counters, in the cycle of the last beat: from a handler, or from the host.
  output logic         sent_o,
  output logic         host_o
);

  typedef struct packed {
    logic [511:0] data;
    logic [63:0]  keep;
    logic         last;
    logic [31:0]  node;
  } beat_t;

  beat_t [1:0] beats;
  beat_t       beat;
  logic [1:0]  ready, unused_count;
  logic        valid, room, is_empty;

  assign is_empty      = send_bytes_i == '0;
  assign beats[0].data = send_data_i;
  assign beats[0].keep = ~({64{1'b1}} << send_bytes_i);
  assign beats[0].last = send_last_i;
  assign beats[0].node = send_command_i.node;
  assign beats[1].data = host_data_i;
  assign beats[1].keep = host_keep_i;
  assign beats[1].last = host_last_i;
  assign beats[1].node = host_dest_i;
  assign send_ready_o  = ready[0] || is_empty;
  assign host_ready_o = ready[1];
  assign sent_o        = ready[0] && send_last_i;
  assign host_o        = ready[1] && host_last_i;

  pspin_join #(
    .Width($bits(beat_t)),
    .N    (2)
  ) u_join (
    .clk_i,
    .rst_ni,
    .valid_i({host_valid_i, send_valid_i && !is_empty}),
    .ready_o(ready),
    .data_i (beats),
    .last_i ({host_last_i, send_last_i}),
    .valid_o(valid),
    .ready_i(room),
    .data_o (beat)
  );

  pspin_fifo #(
    .Width($bits(beat_t)),
    .Depth(2)
  ) u_tx (
    .clk_i,
    .rst_ni,
    .valid_i(valid),
    .ready_o(room),
    .data_i (beat),
    .valid_o(tx_valid_o),
    .ready_i(tx_ready_i),
    .data_o ({tx_data_o, tx_keep_o, tx_last_o, tx_dest_o}),
    .count_o(unused_count)
  );

  // The rest of a command describes the location of the data.
  logic unused;
  assign unused = ^send_command_i;

endmodule
