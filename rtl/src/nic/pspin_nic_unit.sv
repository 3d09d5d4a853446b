// SPDX-License-Identifier: Apache-2.0
// Part of pspin_nic in the clock of the unit: stores matched packets in L2, requests handlers for them, frees them after
// the feedback, and serves the window to the memories. It uses the unit through AXI like any card.
module pspin_nic_unit
  import pspin_pkg::*;
  import pspin_abi_pkg::*;
  import pspin_cfg_pkg::*;
#(
  parameter int unsigned Rulesets    = 4,
  parameter int unsigned IdWidth     = 4,
  parameter int unsigned HostIdWidth = 3
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // Window of pspin_nic_regs to the memories of the unit: an access at a time, of a beat.
  input  logic                    window_valid_i,
  output logic                    window_ready_o,
  input  nic_window_t             window_i,
  output logic                    window_valid_o,
  input  logic                    window_ready_i,
  output logic [511:0]            window_data_o,
  output logic                    window_refused_o,

  // AXI4-Lite to the registers of the unit.
  input  logic                    ctrl_aw_valid_i,
  output logic                    ctrl_aw_ready_o,
  input  logic [15:0]             ctrl_aw_addr_i,
  input  logic                    ctrl_w_valid_i,
  output logic                    ctrl_w_ready_o,
  input  logic [31:0]             ctrl_w_data_i,
  input  logic [3:0]              ctrl_w_strb_i,
  output logic                    ctrl_b_valid_o,
  input  logic                    ctrl_b_ready_i,
  output logic [1:0]              ctrl_b_resp_o,
  input  logic                    ctrl_ar_valid_i,
  output logic                    ctrl_ar_ready_o,
  input  logic [15:0]             ctrl_ar_addr_i,
  output logic                    ctrl_r_valid_o,
  input  logic                    ctrl_r_ready_i,
  output logic [31:0]             ctrl_r_data_o,
  output logic [1:0]              ctrl_r_resp_o,
  output logic                    irq_o,

  // Matched packets of the network.
  input  logic                    rx_valid_i,
  output logic                    rx_ready_o,
  input  logic [511:0]            rx_data_i,
  input  logic [63:0]             rx_keep_i,
  input  logic                    rx_last_i,
  input  logic                    rx_user_i,       // the packet is bad; valid with its last beat
  input  nic_match_t              rx_match_i,

  // Packets of handlers. An empty one has a beat without bytes.
  output logic                    tx_valid_o,
  input  logic                    tx_ready_i,
  output logic [511:0]            tx_data_o,
  output logic [6:0]              tx_bytes_o,
  output logic                    tx_last_o,
  output logic [31:0]             tx_node_o,

  // The memory of the host: AXI4.
  output logic                    host_aw_valid_o,
  input  logic                    host_aw_ready_i,
  output logic [HostIdWidth-1:0]  host_aw_id_o,
  output logic [ContextWidth:0]   host_aw_user_o,
  output logic [63:0]             host_aw_addr_o,
  output logic [7:0]              host_aw_len_o,
  output logic [2:0]              host_aw_size_o,
  output logic [1:0]              host_aw_burst_o,
  output logic                    host_w_valid_o,
  input  logic                    host_w_ready_i,
  output logic [511:0]            host_w_data_o,
  output logic [63:0]             host_w_strb_o,
  output logic                    host_w_last_o,
  input  logic                    host_b_valid_i,
  output logic                    host_b_ready_o,
  input  logic [HostIdWidth-1:0]  host_b_id_i,
  input  logic [1:0]              host_b_resp_i,
  output logic                    host_ar_valid_o,
  input  logic                    host_ar_ready_i,
  output logic [HostIdWidth-1:0]  host_ar_id_o,
  output logic [ContextWidth:0]   host_ar_user_o,
  output logic [63:0]             host_ar_addr_o,
  output logic [7:0]              host_ar_len_o,
  output logic [2:0]              host_ar_size_o,
  output logic [1:0]              host_ar_burst_o,
  input  logic                    host_r_valid_i,
  output logic                    host_r_ready_o,
  input  logic [HostIdWidth-1:0]  host_r_id_i,
  input  logic [511:0]            host_r_data_i,
  input  logic [1:0]              host_r_resp_i,
  input  logic                    host_r_last_i,

  output logic                    dropped_o,       // a packet was bad or too long
  output logic                    idle_o           // nothing is inside, and the unit is idle
);

  localparam int unsigned SlotBytes = 2048;
  localparam logic [2:0]  Burst     = 3'd6;  // bytes of a beat in AXI encoding: 2**6

  /////////////
  // Inbound //
  /////////////

  logic          store_valid, store_ready, asks_valid, asks_ready, feedback_valid, feedback_ready, stored, inbound_empty;
  beat_request_t store;
  her_t          asks;
  feedback_t     feedback;

  pspin_nic_inbound #(
    .Rulesets   (Rulesets),
    .Slots      (L2PacketBytes / SlotBytes),
    .SlotBytes  (SlotBytes),
    .SlotsAt    (MapPacket),
    .MessageIds (MpqQueues),
    .WriteCycles(InboundWriteCycles)
  ) u_inbound (
    .clk_i,
    .rst_ni,
    .rx_valid_i,
    .rx_ready_o,
    .rx_data_i,
    .rx_keep_i,
    .rx_last_i,
    .rx_user_i,
    .rx_match_i,
    .write_valid_o   (store_valid),
    .write_ready_i   (store_ready),
    .write_o         (store),
    .her_valid_o     (asks_valid),
    .her_ready_i     (asks_ready),
    .her_o           (asks),
    .feedback_valid_i(feedback_valid),
    .feedback_ready_o(feedback_ready),
    .feedback_i      (feedback),
    .stored_o        (stored),
    .dropped_o,
    .empty_o         (inbound_empty)
  );

  /////////////////////////
  // Writes, and answers //
  /////////////////////////

  // The window and the inbound engine share the port; each beat is a separate burst.
  logic          load_valid, load_ready, write_valid, write_ready, aw_valid, aw_ready, w_valid, w_ready, b_valid;
  beat_request_t write, load;
  logic [1:0]    b_resp;

  assign load = '{address: window_i.address, strobe: ~({64{1'b1}} << window_i.bytes), wdata: window_i.data};

  pspin_join #(
    .Width($bits(beat_request_t)),
    .N    (2)
  ) u_writes (
    .clk_i,
    .rst_ni,
    .valid_i({load_valid, store_valid}),
    .ready_o({load_ready, store_ready}),
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
    .valid_i(stored),
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

  ////////////////
  // The window //
  ////////////////

  // A write is over when all writes accepted until then are answered, which therefore precede later register accesses.
  typedef enum logic [1:0] {
    Idle,
    Writing,
    Reading,
    Over
  } state_e;

  state_e       state_q;
  logic         ar_ready, r_valid, refused_q;
  logic [15:0]  mark_q;
  logic [1:0]   r_resp;
  logic [511:0] r_data, data_q;

  assign load_valid       = window_valid_i && window_i.is_write && state_q == Idle;
  assign window_ready_o   = state_q == Idle && (window_i.is_write ? load_ready : ar_ready);
  assign window_valid_o   = state_q == Over;
  assign window_data_o    = data_q;
  assign window_refused_o = refused_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
    end else begin
      unique case (state_q)
        Idle:    if (window_valid_i && window_ready_o) state_q <= window_i.is_write ? Writing : Reading;
        Writing: if (16'(answered_q - mark_q) < 16'h8000) state_q <= Over;
        Reading: if (r_valid) state_q <= Over;
        default: if (window_ready_i) state_q <= Idle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == Idle) begin
      mark_q    <= written_q + 16'd1;
      refused_q <= 1'b0;
    end else if ((b_valid && b_resp != '0) || (r_valid && r_resp != '0)) begin
      refused_q <= 1'b1;
    end
    if (r_valid) data_q <= r_data;
  end

  //////////////
  // The unit //
  //////////////

  logic                    unit_idle;
  logic [63:0]             send_keep;
  logic [31:0]             send_size, send_flow, send_user;
  logic [ContextWidth-1:0] send_context;
  logic [2:0]              feedback_kind;
  logic [IdWidth-1:0]      b_id, r_id;
  logic                    r_last;

  pspin_top #(
    .NicIdWidth (IdWidth),
    .HostIdWidth(HostIdWidth)
  ) u_pspin (
    .clk_i,
    .rst_ni,
    .irq_o,
    .idle_o             (unit_idle),
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
    .nic_ar_valid_i     (window_valid_i && !window_i.is_write && state_q == Idle),
    .nic_ar_ready_o     (ar_ready),
    .nic_ar_id_i        ('0),
    .nic_ar_addr_i      (window_i.address),
    .nic_ar_len_i       ('0),
    .nic_ar_size_i      (Burst),
    .nic_ar_burst_i     (2'b01),
    .nic_r_valid_o      (r_valid),
    .nic_r_ready_i      (1'b1),
    .nic_r_id_o         (r_id),
    .nic_r_data_o       (r_data),
    .nic_r_resp_o       (r_resp),
    .nic_r_last_o       (r_last),
    .send_tvalid_o      (tx_valid_o),
    .send_tready_i      (tx_ready_i),
    .send_tdata_o       (tx_data_o),
    .send_tkeep_o       (send_keep),
    .send_tlast_o       (tx_last_o),
    .send_size_o        (send_size),
    .send_node_o        (tx_node_o),
    .send_flow_o        (send_flow),
    .send_user_o        (send_user),
    .send_context_o     (send_context),
    .host_aw_valid_o,
    .host_aw_ready_i,
    .host_aw_id_o,
    .host_aw_user_o,
    .host_aw_addr_o,
    .host_aw_len_o,
    .host_aw_size_o,
    .host_aw_burst_o,
    .host_w_valid_o,
    .host_w_ready_i,
    .host_w_data_o,
    .host_w_strb_o,
    .host_w_last_o,
    .host_b_valid_i,
    .host_b_ready_o,
    .host_b_id_i,
    .host_b_resp_i,
    .host_ar_valid_o,
    .host_ar_ready_i,
    .host_ar_id_o,
    .host_ar_user_o,
    .host_ar_addr_o,
    .host_ar_len_o,
    .host_ar_size_o,
    .host_ar_burst_o,
    .host_r_valid_i,
    .host_r_ready_o,
    .host_r_id_i,
    .host_r_data_i,
    .host_r_resp_i,
    .host_r_last_i,
    .ctrl_aw_valid_i,
    .ctrl_aw_ready_o,
    .ctrl_aw_addr_i,
    .ctrl_w_valid_i,
    .ctrl_w_ready_o,
    .ctrl_w_data_i,
    .ctrl_w_strb_i,
    .ctrl_b_valid_o,
    .ctrl_b_ready_i,
    .ctrl_b_resp_o,
    .ctrl_ar_valid_i,
    .ctrl_ar_ready_o,
    .ctrl_ar_addr_i,
    .ctrl_r_valid_o,
    .ctrl_r_ready_i,
    .ctrl_r_data_o,
    .ctrl_r_resp_o
  );

  assign feedback.kind = end_e'(feedback_kind);

  assign tx_bytes_o = 7'($countones(send_keep));
  assign idle_o     = unit_idle && inbound_empty && written_q == answered_q && !write_valid && !rx_valid_i && state_q == Idle
                    && !window_valid_i;

  // Beats are single bursts in order, and the card uses only the node of a command.
  logic unused;
  assign unused = ^{mark_ready, b_id, r_id, r_last, send_size, send_flow, send_user, send_context};

endmodule
