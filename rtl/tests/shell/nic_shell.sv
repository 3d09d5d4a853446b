// SPDX-License-Identifier: Apache-2.0
// Small network card around the unit of a machine, which it uses through AXI like any card: network packets that match
// a rule go to the unit, all others to the host's network stack; packets of handlers and of the host go to the network.
module nic_shell
  import pspin_pkg::*;
  import pspin_abi_pkg::*;
  import pspin_cfg_pkg::*;
#(
  parameter int unsigned Rules       = 4,
  parameter int unsigned IdWidth     = 4,
  parameter int unsigned HostIdWidth = 3
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // Driver: rules of the card; beats for the memories of the unit, and AXI4 to read them; AXI4-Lite to its registers.
  input  logic                    rule_write_i,
  input  logic [1:0]              rule_index_i,
  input  nic_rule_t               rule_i,
  input  logic                    load_valid_i,
  output logic                    load_ready_o,
  input  logic [31:0]             load_address_i,
  input  logic [511:0]            load_data_i,
  input  logic [63:0]             load_keep_i,
  input  logic                    nic_ar_valid_i,
  output logic                    nic_ar_ready_o,
  input  logic [31:0]             nic_ar_addr_i,
  output logic                    nic_r_valid_o,
  output logic [511:0]            nic_r_data_o,
  output logic [1:0]              nic_r_resp_o,
  input  logic                    ctrl_aw_valid_i,
  output logic                    ctrl_aw_ready_o,
  input  logic [15:0]             ctrl_aw_addr_i,
  input  logic                    ctrl_w_valid_i,
  output logic                    ctrl_w_ready_o,
  input  logic [31:0]             ctrl_w_data_i,
  output logic                    ctrl_b_valid_o,
  output logic [1:0]              ctrl_b_resp_o,
  input  logic                    ctrl_ar_valid_i,
  output logic                    ctrl_ar_ready_o,
  input  logic [15:0]             ctrl_ar_addr_i,
  output logic                    ctrl_r_valid_o,
  output logic [31:0]             ctrl_r_data_o,
  output logic [1:0]              ctrl_r_resp_o,
  output logic                    irq_o,

  // The network.
  input  logic                    rx_valid_i,
  output logic                    rx_ready_o,
  input  logic [511:0]            rx_data_i,
  input  logic [63:0]             rx_keep_i,
  input  logic                    rx_last_i,
  input  logic                    rx_user_i,       // the packet is bad; valid with its last beat
  output logic                    tx_valid_o,
  input  logic                    tx_ready_i,
  output logic [511:0]            tx_data_o,
  output logic [63:0]             tx_keep_o,
  output logic                    tx_last_o,

  // The network stack of the host.
  input  logic                    from_valid_i,
  output logic                    from_ready_o,
  input  logic [511:0]            from_data_i,
  input  logic [63:0]             from_keep_i,
  input  logic                    from_last_i,
  output logic                    other_valid_o,
  input  logic                    other_ready_i,
  output logic [511:0]            other_data_o,
  output logic [63:0]             other_keep_o,
  output logic                    other_last_o,

  // The memory of the host: AXI4.
  output logic                    host_aw_valid_o,
  input  logic                    host_aw_ready_i,
  output logic [HostIdWidth-1:0]  host_aw_id_o,
  output logic [63:0]             host_aw_addr_o,
  output logic [7:0]              host_aw_len_o,
  output logic                    host_w_valid_o,
  input  logic                    host_w_ready_i,
  output logic [511:0]            host_w_data_o,
  output logic [63:0]             host_w_strb_o,
  output logic                    host_w_last_o,
  input  logic                    host_b_valid_i,
  output logic                    host_b_ready_o,
  input  logic [HostIdWidth-1:0]  host_b_id_i,
  output logic                    host_ar_valid_o,
  input  logic                    host_ar_ready_i,
  output logic [HostIdWidth-1:0]  host_ar_id_o,
  output logic [63:0]             host_ar_addr_o,
  output logic [7:0]              host_ar_len_o,
  input  logic                    host_r_valid_i,
  output logic                    host_r_ready_o,
  input  logic [HostIdWidth-1:0]  host_r_id_i,
  input  logic [511:0]            host_r_data_i,
  input  logic                    host_r_last_i,

  // To counters: a network packet is stored for the unit, sent to the host, or dropped; a packet of a handler or of the
  // host is sent.
  output logic                    stored_o,
  output logic                    other_o,
  output logic                    dropped_o,
  output logic                    sent_o,
  output logic                    from_o,
  output logic                    empty_o,         // nothing inside, and the unit has no packet
  output logic                    idle_o
);

  localparam int unsigned SlotBytes = 2048;
  localparam logic [2:0]  Burst     = 3'd6;  // bytes of a beat in AXI encoding: 2**6

  /////////////
  // Inbound //
  /////////////

  logic          store_valid, store_ready, asks_valid, asks_ready, feedback_valid, feedback_ready, other_user, inbound_empty;
  beat_request_t store;
  her_t          asks;
  feedback_t     feedback;

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
    .other_user_o    (other_user),
    .write_valid_o   (store_valid),
    .write_ready_i   (store_ready),
    .write_o         (store),
    .her_valid_o     (asks_valid),
    .her_ready_i     (asks_ready),
    .her_o           (asks),
    .feedback_valid_i(feedback_valid),
    .feedback_ready_o(feedback_ready),
    .feedback_i      (feedback),
    .stored_o,
    .other_o,
    .dropped_o,
    .empty_o         (inbound_empty)
  );

  /////////////////////////
  // Writes, and answers //
  /////////////////////////

  // The driver and the inbound engine share the port; each beat is a separate burst.
  logic          write_valid, write_ready, aw_valid, aw_ready, w_valid, w_ready, b_valid;
  beat_request_t write, load;
  logic [1:0]    b_resp;

  assign load = '{address: load_address_i, strobe: load_keep_i, wdata: load_data_i};

  pspin_join #(
    .Width($bits(beat_request_t)),
    .N    (2)
  ) u_writes (
    .clk_i,
    .rst_ni,
    .valid_i({load_valid_i, store_valid}),
    .ready_o({load_ready_o, store_ready}),
    .data_i ({load, store}),
    .last_i ('1),
    .valid_o(write_valid),
    .ready_i(write_ready),
    .data_o (write)
  );

  // Address and data may be accepted in different cycles.
  logic          aw_room, w_room;
  logic [31:0]   aw_addr;
  logic [511:0]  w_data;
  logic [63:0]   w_strobe;

  assign write_ready = aw_room && w_room;

  pspin_fifo #(
    .Width(32),
    .Depth(4)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .valid_i(write_valid && w_room),
    .ready_o(aw_room),
    .data_i (write.address),
    .valid_o(aw_valid),
    .ready_i(aw_ready),
    .data_o (aw_addr),
    .count_o()
  );

  pspin_fifo #(
    .Width(512 + 64),
    .Depth(4)
  ) u_w (
    .clk_i,
    .rst_ni,
    .valid_i(write_valid && aw_room),
    .ready_o(w_room),
    .data_i ({write.wdata, write.strobe}),
    .valid_o(w_valid),
    .ready_i(w_ready),
    .data_o ({w_data, w_strobe}),
    .count_o()
  );

  // The unit is asked once all writes accepted before the end of the packet are answered. Sixteen bits suffice to order
  // them.
  logic [15:0] written_q, answered_q, written_at;
  logic        mark_ready, mark_valid, is_written, her_valid, her_ready;

  assign is_written = mark_valid && 16'(answered_q - written_at) < 16'h8000;
  assign her_valid  = asks_valid && is_written;
  assign asks_ready = her_ready && is_written;

  pspin_fifo #(
    .Width(16),
    .Depth(L2PacketBytes / SlotBytes)
  ) u_marks (
    .clk_i,
    .rst_ni,
    .valid_i(stored_o),
    .ready_o(mark_ready),
    .data_i (written_q + 16'd1),
    .valid_o(mark_valid),
    .ready_i(her_valid && her_ready),
    .data_o (written_at),
    .count_o()
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      written_q  <= '0;
      answered_q <= '0;
    end else begin
      written_q  <= written_q + 16'(write_valid && write_ready);
      answered_q <= answered_q + 16'(b_valid);
    end
  end

  assign empty_o = inbound_empty && written_q == answered_q && !write_valid;

  //////////////
  // The unit //
  //////////////

  logic                    send_valid, send_ready, send_last;
  logic [511:0]            send_data;
  logic [63:0]             send_keep;
  logic [31:0]             send_size, send_node, send_flow, send_user;
  logic [ContextWidth-1:0] send_context;
  logic [ContextWidth:0]   host_aw_user, host_ar_user;
  logic [2:0]              host_aw_size, host_ar_size, feedback_kind;
  logic [1:0]              host_aw_burst, host_ar_burst;
  logic [IdWidth-1:0]      b_id, r_id;
  logic                    r_last;

  pspin_top #(
    .NicIdWidth (IdWidth),
    .HostIdWidth(HostIdWidth)
  ) u_pspin (
    .clk_i,
    .rst_ni,
    .irq_o,
    .idle_o,
    .her_valid_i        (her_valid),
    .her_ready_o        (her_ready),
    .her_message_i      (asks.message),
    .her_flow_i         (asks.flow),
    .her_eom_i          (asks.eom),
    .her_address_i      (asks.address),
    .her_size_i         (asks.size),
    .her_transfer_i     (asks.transfer),
    .her_context_i      (asks.execution_context),
    .her_user_i         (asks.user),
    .feedback_valid_o   (feedback_valid),
    .feedback_ready_i   (feedback_ready),
    .feedback_message_o (feedback.message),
    .feedback_address_o (feedback.address),
    .feedback_size_o    (feedback.size),
    .feedback_transfer_o(feedback.transfer),
    .feedback_user_o    (feedback.user),
    .feedback_kind_o    (feedback_kind),
    .feedback_last_o    (feedback.last),
    .nic_aw_valid_i     (aw_valid),
    .nic_aw_ready_o     (aw_ready),
    .nic_aw_id_i        ('0),
    .nic_aw_addr_i      (aw_addr),
    .nic_aw_len_i       ('0),
    .nic_aw_size_i      (Burst),
    .nic_aw_burst_i     (2'b01),
    .nic_w_valid_i      (w_valid),
    .nic_w_ready_o      (w_ready),
    .nic_w_data_i       (w_data),
    .nic_w_strb_i       (w_strobe),
    .nic_w_last_i       (1'b1),
    .nic_b_valid_o      (b_valid),
    .nic_b_ready_i      (1'b1),
    .nic_b_id_o         (b_id),
    .nic_b_resp_o       (b_resp),
    .nic_ar_valid_i,
    .nic_ar_ready_o,
    .nic_ar_id_i        ('0),
    .nic_ar_addr_i,
    .nic_ar_len_i       ('0),
    .nic_ar_size_i      (Burst),
    .nic_ar_burst_i     (2'b01),
    .nic_r_valid_o,
    .nic_r_ready_i      (1'b1),
    .nic_r_id_o         (r_id),
    .nic_r_data_o,
    .nic_r_resp_o,
    .nic_r_last_o       (r_last),
    .send_tvalid_o      (send_valid),
    .send_tready_i      (send_ready),
    .send_tdata_o       (send_data),
    .send_tkeep_o       (send_keep),
    .send_tlast_o       (send_last),
    .send_size_o        (send_size),
    .send_node_o        (send_node),
    .send_flow_o        (send_flow),
    .send_user_o        (send_user),
    .send_context_o     (send_context),
    .host_aw_valid_o,
    .host_aw_ready_i,
    .host_aw_id_o,
    .host_aw_user_o     (host_aw_user),
    .host_aw_addr_o,
    .host_aw_len_o,
    .host_aw_size_o     (host_aw_size),
    .host_aw_burst_o    (host_aw_burst),
    .host_w_valid_o,
    .host_w_ready_i,
    .host_w_data_o,
    .host_w_strb_o,
    .host_w_last_o,
    .host_b_valid_i,
    .host_b_ready_o,
    .host_b_id_i,
    .host_b_resp_i      (2'b00),
    .host_ar_valid_o,
    .host_ar_ready_i,
    .host_ar_id_o,
    .host_ar_user_o     (host_ar_user),
    .host_ar_addr_o,
    .host_ar_len_o,
    .host_ar_size_o     (host_ar_size),
    .host_ar_burst_o    (host_ar_burst),
    .host_r_valid_i,
    .host_r_ready_o,
    .host_r_id_i,
    .host_r_data_i,
    .host_r_resp_i      (2'b00),
    .host_r_last_i,
    .ctrl_aw_valid_i,
    .ctrl_aw_ready_o,
    .ctrl_aw_addr_i,
    .ctrl_w_valid_i,
    .ctrl_w_ready_o,
    .ctrl_w_data_i,
    .ctrl_w_strb_i      (4'hF),
    .ctrl_b_valid_o,
    .ctrl_b_ready_i     (1'b1),
    .ctrl_b_resp_o,
    .ctrl_ar_valid_i,
    .ctrl_ar_ready_o,
    .ctrl_ar_addr_i,
    .ctrl_r_valid_o,
    .ctrl_r_ready_i     (1'b1),
    .ctrl_r_data_o,
    .ctrl_r_resp_o
  );

  assign feedback.kind = end_e'(feedback_kind);

  //////////////
  // Outbound //
  //////////////

  command_t    command;
  logic [31:0] tx_dest;

  always_comb begin
    command           = '0;
    command.data.size = send_size;
    command.node      = send_node;
  end

  pspin_nic_outbound u_outbound (
    .clk_i,
    .rst_ni,
    .send_valid_i  (send_valid),
    .send_ready_o  (send_ready),
    .send_command_i(command),
    .send_data_i   (send_data),
    .send_bytes_i  (7'($countones(send_keep))),
    .send_last_i   (send_last),
    .host_valid_i  (from_valid_i),
    .host_ready_o  (from_ready_o),
    .host_data_i   (from_data_i),
    .host_keep_i   (from_keep_i),
    .host_last_i   (from_last_i),
    .host_dest_i   ('0),
    .tx_valid_o,
    .tx_ready_i,
    .tx_data_o,
    .tx_keep_o,
    .tx_last_o,
    .tx_dest_o     (tx_dest),
    .sent_o,
    .host_o        (from_o)
  );

  // The card ignores the destination node of a packet, and writes only to mapped memory.
  logic unused;
  assign unused = ^{other_user, mark_ready, b_id, b_resp, r_id, r_last, send_flow, send_user, send_context, tx_dest, host_aw_user,
                    host_ar_user, host_aw_size, host_ar_size, host_aw_burst, host_ar_burst};

endmodule
