// A small NIC around the unit of a machine: what its engines want goes to the unit, all else between network and host. There is no
// host memory: what handlers write there is lost, and nothing is read.
module nic_shell
  import pspin_pkg::*;
  import pspin_abi_pkg::*;
  import pspin_cfg_pkg::*;
#(
  parameter int unsigned Rules = 4
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  // The driver: rules, registers, and the memories of the unit.
  input  logic             rule_write_i,
  input  logic [1:0]       rule_index_i,
  input  nic_rule_t        rule_i,
  input  logic             ctrl_valid_i,
  input  logic             ctrl_we_i,
  input  logic [15:0]      ctrl_address_i,
  input  logic [31:0]      ctrl_wdata_i,
  output logic             ctrl_rvalid_o,
  output logic [31:0]      ctrl_rdata_o,
  input  logic             load_valid_i,
  output logic             load_ready_o,
  input  beat_request_t    load_i,

  // The network.
  input  logic             rx_valid_i,
  output logic             rx_ready_o,
  input  logic [511:0]     rx_data_i,
  input  logic [63:0]      rx_keep_i,
  input  logic             rx_last_i,
  input  logic             rx_user_i,
  output logic             tx_valid_o,
  input  logic             tx_ready_i,
  output logic [511:0]     tx_data_o,
  output logic [63:0]      tx_keep_o,
  output logic             tx_last_o,

  // The network stack of the host.
  input  logic             host_valid_i,
  output logic             host_ready_o,
  input  logic [511:0]     host_data_i,
  input  logic [63:0]      host_keep_i,
  input  logic             host_last_i,
  output logic             other_valid_o,
  input  logic             other_ready_i,
  output logic [511:0]     other_data_o,
  output logic [63:0]      other_keep_o,
  output logic             other_last_o,

  output logic             empty_o,
  output logic             idle_o
);

  localparam int unsigned SlotBytes = 2048;

  logic          her_valid, her_ready, feedback_valid, feedback_ready, write_valid, write_ready, in_valid, in_ready;
  logic          send_valid, send_ready, send_first, send_last, unused_user, stored, other, dropped, sent, host;
  her_t          her;
  feedback_t     feedback;
  beat_request_t write, in;
  command_t      send_command;
  logic [511:0]  send_data, unused_read_data, unused_host_data;
  logic [6:0]    send_bytes, unused_host_bytes;
  logic [31:0]   unused_dest, unused_read_size;
  logic [63:0]   unused_write_address, unused_read_address;
  logic          write_missing, read_ready, read_valid, read_missing, host_first, host_write_valid, host_last, host_own;
  logic          read_host_valid, data_ready, irq, written_q;
  logic [1:0]    host_id, written_id_q, read_id;
  logic [ContextWidth-1:0] write_context, read_context;

  pspin_nic_inbound #(
    .Rules      (Rules),
    .Slots      (L2PacketBytes / SlotBytes),
    .SlotBytes  (SlotBytes),
    .SlotsAt    (MapPacket),
    .MessageIds (MpqQueues),
    .WriteCycles(InboundWriteCycles)
  ) u_inbound (
    .clk_i,
    .rst_ni,
    .rule_write_i,
    .rule_index_i,
    .rule_i,
    .rx_valid_i,
    .rx_ready_o,
    .rx_data_i,
    .rx_keep_i,
    .rx_last_i,
    .rx_user_i,
    .other_valid_o,
    .other_ready_i,
    .other_data_o,
    .other_keep_o,
    .other_last_o,
    .other_user_o    (unused_user),
    .write_valid_o   (write_valid),
    .write_ready_i   (write_ready),
    .write_o         (write),
    .her_valid_o     (her_valid),
    .her_ready_i     (her_ready),
    .her_o           (her),
    .feedback_valid_i(feedback_valid),
    .feedback_ready_o(feedback_ready),
    .feedback_i      (feedback),
    .stored_o        (stored),
    .other_o         (other),
    .dropped_o       (dropped),
    .empty_o
  );

  pspin_join #(
    .Width($bits(beat_request_t)),
    .N    (2)
  ) u_writes (
    .clk_i,
    .rst_ni,
    .valid_i({load_valid_i, write_valid}),
    .ready_o({load_ready_o, write_ready}),
    .data_i ({load_i, write}),
    .last_i ('1),
    .valid_o(in_valid),
    .ready_i(in_ready),
    .data_o (in)
  );

  pspin_unit u_unit (
    .clk_i,
    .rst_ni,
    .her_valid_i           (her_valid),
    .her_ready_o           (her_ready),
    .her_i                 (her),
    .feedback_valid_o      (feedback_valid),
    .feedback_ready_i      (feedback_ready),
    .feedback_o            (feedback),
    .write_valid_i         (in_valid),
    .write_ready_o         (in_ready),
    .write_i               (in),
    .write_missing_o       (write_missing),
    .read_valid_i          (1'b0),
    .read_ready_o          (read_ready),
    .read_address_i        ('0),
    .read_valid_o          (read_valid),
    .read_data_o           (unused_read_data),
    .read_missing_o        (read_missing),
    .send_valid_o          (send_valid),
    .send_ready_i          (send_ready),
    .send_command_o        (send_command),
    .send_data_o           (send_data),
    .send_bytes_o          (send_bytes),
    .send_first_o          (send_first),
    .send_last_o           (send_last),
    .host_write_valid_o    (host_write_valid),
    .host_write_ready_i    (1'b1),
    .host_write_address_o  (unused_write_address),
    .host_write_data_o     (unused_host_data),
    .host_write_bytes_o    (unused_host_bytes),
    .host_write_first_o    (host_first),
    .host_write_last_o     (host_last),
    .host_write_id_o       (host_id),
    .host_write_context_o  (write_context),
    .host_write_own_o      (host_own),
    .host_written_valid_i  (written_q),
    .host_written_id_i     (written_id_q),
    .host_written_refused_i(1'b0),
    .host_read_valid_o     (read_host_valid),
    .host_read_ready_i     (1'b0),
    .host_read_address_o   (unused_read_address),
    .host_read_size_o      (unused_read_size),
    .host_read_id_o        (read_id),
    .host_read_context_o   (read_context),
    .host_data_valid_i     (1'b0),
    .host_data_ready_o     (data_ready),
    .host_data_i           ('0),
    .host_data_last_i      (1'b0),
    .host_data_id_i        ('0),
    .host_data_refused_i   (1'b0),
    .ctrl_valid_i,
    .ctrl_we_i,
    .ctrl_address_i,
    .ctrl_wdata_i,
    .ctrl_rvalid_o,
    .ctrl_rdata_o,
    .irq_o                 (irq),
    .idle_o
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) written_q <= 1'b0;
    else written_q <= host_write_valid && host_last;
  end

  always_ff @(posedge clk_i) written_id_q <= host_id;

  pspin_nic_outbound u_outbound (
    .clk_i,
    .rst_ni,
    .send_valid_i  (send_valid),
    .send_ready_o  (send_ready),
    .send_command_i(send_command),
    .send_data_i   (send_data),
    .send_bytes_i  (send_bytes),
    .send_last_i   (send_last),
    .host_valid_i,
    .host_ready_o,
    .host_data_i,
    .host_keep_i,
    .host_last_i,
    .host_dest_i   ('0),
    .tx_valid_o,
    .tx_ready_i,
    .tx_data_o,
    .tx_keep_o,
    .tx_last_o,
    .tx_dest_o     (unused_dest),
    .sent_o        (sent),
    .host_o        (host)
  );

  logic unused;
  assign unused = ^{stored, other, dropped, sent, host, send_first, write_missing, read_ready, read_valid, read_missing, host_first,
                    host_own, write_context, read_context, read_host_valid, read_id, data_ready, irq};

endmodule
