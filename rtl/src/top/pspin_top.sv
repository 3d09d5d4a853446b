// SPDX-License-Identifier: Apache-2.0
// The PsPIN unit with AXI at its edges, as a network card uses it (docs/pspin-integration.md): AXI4 for the memories and for the host,
// AXI4-Lite for the registers, AXI-Stream for packets of handlers, and plain streams for requests and feedback.
module pspin_top
  import pspin_pkg::*;
#(
  parameter int unsigned NicIdWidth  = 4,
  parameter int unsigned HostIdWidth = 3
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  output logic                    irq_o,   // to the driver on the host: events or characters pending
  output logic                    idle_o,  // to the clock: it may stop until the next input

  // Inbound engine of the NIC: requests, each for a packet in the packet buffer; and finished packets.
  input  logic                    her_valid_i,
  output logic                    her_ready_o,
  input  logic [31:0]             her_message_i,
  input  logic [31:0]             her_flow_i,
  input  logic                    her_eom_i,
  input  logic [31:0]             her_address_i,
  input  logic [SizeWidth-1:0]    her_size_i,
  input  logic [SizeWidth-1:0]    her_transfer_i,
  input  logic [ContextWidth-1:0] her_context_i,
  input  logic [31:0]             her_user_i,
  output logic                    feedback_valid_o,
  input  logic                    feedback_ready_i,
  output logic [31:0]             feedback_message_o,
  output logic [31:0]             feedback_address_o,
  output logic [SizeWidth-1:0]    feedback_size_o,
  output logic [SizeWidth-1:0]    feedback_transfer_o,
  output logic [31:0]             feedback_user_o,
  output logic [2:0]              feedback_kind_o,   // end_e
  output logic                    feedback_last_o,

  // Inbound engine of the NIC, and host: AXI4 to the memories of the unit.
  input  logic                    nic_aw_valid_i,
  output logic                    nic_aw_ready_o,
  input  logic [NicIdWidth-1:0]   nic_aw_id_i,
  input  logic [31:0]             nic_aw_addr_i,
  input  logic [7:0]              nic_aw_len_i,
  input  logic [2:0]              nic_aw_size_i,
  input  logic [1:0]              nic_aw_burst_i,
  input  logic                    nic_w_valid_i,
  output logic                    nic_w_ready_o,
  input  logic [511:0]            nic_w_data_i,
  input  logic [BeatBytes-1:0]    nic_w_strb_i,
  input  logic                    nic_w_last_i,
  output logic                    nic_b_valid_o,
  input  logic                    nic_b_ready_i,
  output logic [NicIdWidth-1:0]   nic_b_id_o,
  output logic [1:0]              nic_b_resp_o,
  input  logic                    nic_ar_valid_i,
  output logic                    nic_ar_ready_o,
  input  logic [NicIdWidth-1:0]   nic_ar_id_i,
  input  logic [31:0]             nic_ar_addr_i,
  input  logic [7:0]              nic_ar_len_i,
  input  logic [2:0]              nic_ar_size_i,
  input  logic [1:0]              nic_ar_burst_i,
  output logic                    nic_r_valid_o,
  input  logic                    nic_r_ready_i,
  output logic [NicIdWidth-1:0]   nic_r_id_o,
  output logic [511:0]            nic_r_data_o,
  output logic [1:0]              nic_r_resp_o,
  output logic                    nic_r_last_o,

  // Outbound engine of the NIC: packets as AXI-Stream. The other signals give sender and destination with each beat.
  output logic                    send_tvalid_o,
  input  logic                    send_tready_i,
  output logic [511:0]            send_tdata_o,
  output logic [BeatBytes-1:0]    send_tkeep_o,
  output logic                    send_tlast_o,
  output logic [31:0]             send_size_o,
  output logic [31:0]             send_node_o,
  output logic [31:0]             send_flow_o,     // 0 for a raw packet
  output logic [31:0]             send_user_o,
  output logic [ContextWidth-1:0] send_context_o,

  // Host memory: AXI4. Identifiers: 0 off-cluster DMA engine, 1 host-direct commands, 2 the unit itself. The user bits
  // identify the requester to the IOMMU: the execution context of a handler, or, when the highest bit is set, the unit
  // itself.
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
  output logic [BeatBytes-1:0]    host_w_strb_o,
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

  // Driver on the host: AXI4-Lite to the registers.
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
  output logic [1:0]              ctrl_r_resp_o
);

  her_t      her;
  feedback_t feedback;

  always_comb begin
    her.message           = her_message_i;
    her.flow              = her_flow_i;
    her.eom               = her_eom_i;
    her.address           = her_address_i;
    her.size              = her_size_i;
    her.transfer          = her_transfer_i;
    her.execution_context = her_context_i;
    her.user              = her_user_i;
  end

  assign feedback_message_o  = feedback.message;
  assign feedback_address_o  = feedback.address;
  assign feedback_size_o     = feedback.size;
  assign feedback_transfer_o = feedback.transfer;
  assign feedback_user_o     = feedback.user;
  assign feedback_kind_o     = feedback.kind;
  assign feedback_last_o     = feedback.last;

  logic                    write_valid, write_ready, write_missing, read_valid, read_ready, read_rvalid, read_missing;
  beat_request_t           write;
  logic [31:0]             read_address;
  logic [511:0]            read_data;
  logic                    ctrl_valid, ctrl_we, ctrl_rvalid;
  logic [15:0]             ctrl_address;
  logic [31:0]             ctrl_wdata, ctrl_rdata;
  command_t                send;
  logic [6:0]              send_bytes, host_write_bytes;
  logic                    send_first, unit_idle;
  logic                    host_write_valid, host_write_ready, host_write_first, host_write_last, host_write_own;
  logic                    host_written_valid, host_written_refused, host_read_valid, host_read_ready;
  logic                    host_data_valid, host_data_ready, host_data_last, host_data_refused;
  logic [63:0]             host_write_address, host_read_address;
  logic [31:0]             host_write_size, host_read_size;
  logic [511:0]            host_write_data, host_data;
  logic [1:0]              host_write_id, host_written_id, host_read_id, host_data_id;
  logic [ContextWidth-1:0] host_write_context, host_read_context;

  logic        write_stray, read_stray;
  logic [31:0] host_timeout;

  pspin_unit u_unit (
    .clk_i,
    .rst_ni,
    .host_timeout_o        (host_timeout),
    .host_strays_i         ({write_stray, read_stray}),
    .her_valid_i,
    .her_ready_o,
    .her_i                 (her),
    .feedback_valid_o,
    .feedback_ready_i,
    .feedback_o            (feedback),
    .write_valid_i         (write_valid),
    .write_ready_o         (write_ready),
    .write_i               (write),
    .write_missing_o       (write_missing),
    .read_valid_i          (read_valid),
    .read_ready_o          (read_ready),
    .read_address_i        (read_address),
    .read_valid_o          (read_rvalid),
    .read_data_o           (read_data),
    .read_missing_o        (read_missing),
    .send_valid_o          (send_tvalid_o),
    .send_ready_i          (send_tready_i),
    .send_command_o        (send),
    .send_data_o           (send_tdata_o),
    .send_bytes_o          (send_bytes),
    .send_first_o          (send_first),
    .send_last_o           (send_tlast_o),
    .host_write_valid_o    (host_write_valid),
    .host_write_ready_i    (host_write_ready),
    .host_write_address_o  (host_write_address),
    .host_write_size_o     (host_write_size),
    .host_write_data_o     (host_write_data),
    .host_write_bytes_o    (host_write_bytes),
    .host_write_first_o    (host_write_first),
    .host_write_last_o     (host_write_last),
    .host_write_id_o       (host_write_id),
    .host_write_context_o  (host_write_context),
    .host_write_own_o      (host_write_own),
    .host_written_valid_i  (host_written_valid),
    .host_written_id_i     (host_written_id),
    .host_written_refused_i(host_written_refused),
    .host_read_valid_o     (host_read_valid),
    .host_read_ready_i     (host_read_ready),
    .host_read_address_o   (host_read_address),
    .host_read_size_o      (host_read_size),
    .host_read_id_o        (host_read_id),
    .host_read_context_o   (host_read_context),
    .host_data_valid_i     (host_data_valid),
    .host_data_ready_o     (host_data_ready),
    .host_data_i           (host_data),
    .host_data_last_i      (host_data_last),
    .host_data_id_i        (host_data_id),
    .host_data_refused_i   (host_data_refused),
    .ctrl_valid_i          (ctrl_valid),
    .ctrl_we_i             (ctrl_we),
    .ctrl_address_i        (ctrl_address),
    .ctrl_wdata_i          (ctrl_wdata),
    .ctrl_rvalid_o         (ctrl_rvalid),
    .ctrl_rdata_o          (ctrl_rdata),
    .irq_o,
    .idle_o                (unit_idle)
  );

  pspin_axi_slave #(
    .IdWidth(NicIdWidth)
  ) u_nic (
    .clk_i,
    .rst_ni,
    .aw_valid_i     (nic_aw_valid_i),
    .aw_ready_o     (nic_aw_ready_o),
    .aw_id_i        (nic_aw_id_i),
    .aw_addr_i      (nic_aw_addr_i),
    .aw_len_i       (nic_aw_len_i),
    .aw_size_i      (nic_aw_size_i),
    .aw_burst_i     (nic_aw_burst_i),
    .w_valid_i      (nic_w_valid_i),
    .w_ready_o      (nic_w_ready_o),
    .w_data_i       (nic_w_data_i),
    .w_strb_i       (nic_w_strb_i),
    .w_last_i       (nic_w_last_i),
    .b_valid_o      (nic_b_valid_o),
    .b_ready_i      (nic_b_ready_i),
    .b_id_o         (nic_b_id_o),
    .b_resp_o       (nic_b_resp_o),
    .ar_valid_i     (nic_ar_valid_i),
    .ar_ready_o     (nic_ar_ready_o),
    .ar_id_i        (nic_ar_id_i),
    .ar_addr_i      (nic_ar_addr_i),
    .ar_len_i       (nic_ar_len_i),
    .ar_size_i      (nic_ar_size_i),
    .ar_burst_i     (nic_ar_burst_i),
    .r_valid_o      (nic_r_valid_o),
    .r_ready_i      (nic_r_ready_i),
    .r_id_o         (nic_r_id_o),
    .r_data_o       (nic_r_data_o),
    .r_resp_o       (nic_r_resp_o),
    .r_last_o       (nic_r_last_o),
    .write_valid_o  (write_valid),
    .write_ready_i  (write_ready),
    .write_o        (write),
    .write_missing_i(write_missing),
    .read_valid_o   (read_valid),
    .read_ready_i   (read_ready),
    .read_address_o (read_address),
    .read_rvalid_i  (read_rvalid),
    .read_data_i    (read_data),
    .read_missing_i (read_missing)
  );

  assign send_size_o    = send.data.size;
  assign send_node_o    = send.node;
  assign send_flow_o    = send.flow;
  assign send_user_o    = send.user;
  assign send_context_o = send.execution_context;

  always_comb begin
    for (int unsigned i = 0; i < BeatBytes; i++) send_tkeep_o[i] = 7'(i) < send_bytes;
  end

  pspin_axi_host_write #(
    .IdWidth  (HostIdWidth),
    .UserWidth(ContextWidth + 1)
  ) u_host_write (
    .clk_i,
    .rst_ni,
    .timeout_i            (host_timeout),
    .stray_o              (write_stray),
    .host_write_valid_i    (host_write_valid),
    .host_write_ready_o    (host_write_ready),
    .host_write_address_i  (host_write_address),
    .host_write_size_i     (host_write_size),
    .host_write_id_i       (host_write_id),
    .host_write_user_i     ({host_write_own, host_write_context}),
    .host_write_data_i     (host_write_data),
    .host_write_last_i     (host_write_last),
    .host_written_valid_o  (host_written_valid),
    .host_written_id_o     (host_written_id),
    .host_written_refused_o(host_written_refused),
    .aw_valid_o            (host_aw_valid_o),
    .aw_ready_i            (host_aw_ready_i),
    .aw_id_o               (host_aw_id_o),
    .aw_user_o             (host_aw_user_o),
    .aw_addr_o             (host_aw_addr_o),
    .aw_len_o              (host_aw_len_o),
    .aw_size_o             (host_aw_size_o),
    .aw_burst_o            (host_aw_burst_o),
    .w_valid_o             (host_w_valid_o),
    .w_ready_i             (host_w_ready_i),
    .w_data_o              (host_w_data_o),
    .w_strb_o              (host_w_strb_o),
    .w_last_o              (host_w_last_o),
    .b_valid_i             (host_b_valid_i),
    .b_ready_o             (host_b_ready_o),
    .b_id_i                (host_b_id_i),
    .b_resp_i              (host_b_resp_i)
  );

  pspin_axi_host_read #(
    .IdWidth  (HostIdWidth),
    .UserWidth(ContextWidth + 1)
  ) u_host_read (
    .clk_i,
    .rst_ni,
    .timeout_i         (host_timeout),
    .stray_o           (read_stray),
    .host_read_valid_i  (host_read_valid),
    .host_read_ready_o  (host_read_ready),
    .host_read_address_i(host_read_address),
    .host_read_size_i   (host_read_size),
    .host_read_id_i     (host_read_id),
    .host_read_user_i   ({1'b0, host_read_context}),
    .host_data_valid_o  (host_data_valid),
    .host_data_ready_i  (host_data_ready),
    .host_data_o        (host_data),
    .host_data_last_o   (host_data_last),
    .host_data_id_o     (host_data_id),
    .host_data_refused_o(host_data_refused),
    .ar_valid_o         (host_ar_valid_o),
    .ar_ready_i         (host_ar_ready_i),
    .ar_id_o            (host_ar_id_o),
    .ar_user_o          (host_ar_user_o),
    .ar_addr_o          (host_ar_addr_o),
    .ar_len_o           (host_ar_len_o),
    .ar_size_o          (host_ar_size_o),
    .ar_burst_o         (host_ar_burst_o),
    .r_valid_i          (host_r_valid_i),
    .r_ready_o          (host_r_ready_o),
    .r_id_i             (host_r_id_i),
    .r_data_i           (host_r_data_i),
    .r_resp_i           (host_r_resp_i),
    .r_last_i           (host_r_last_i)
  );

  pspin_axi_lite u_ctrl (
    .clk_i,
    .rst_ni,
    .aw_valid_i    (ctrl_aw_valid_i),
    .aw_ready_o    (ctrl_aw_ready_o),
    .aw_addr_i     (ctrl_aw_addr_i),
    .w_valid_i     (ctrl_w_valid_i),
    .w_ready_o     (ctrl_w_ready_o),
    .w_data_i      (ctrl_w_data_i),
    .w_strb_i      (ctrl_w_strb_i),
    .b_valid_o     (ctrl_b_valid_o),
    .b_ready_i     (ctrl_b_ready_i),
    .b_resp_o      (ctrl_b_resp_o),
    .ar_valid_i    (ctrl_ar_valid_i),
    .ar_ready_o    (ctrl_ar_ready_o),
    .ar_addr_i     (ctrl_ar_addr_i),
    .r_valid_o     (ctrl_r_valid_o),
    .r_ready_i     (ctrl_r_ready_i),
    .r_data_o      (ctrl_r_data_o),
    .r_resp_o      (ctrl_r_resp_o),
    .ctrl_valid_o  (ctrl_valid),
    .ctrl_we_o     (ctrl_we),
    .ctrl_address_o(ctrl_address),
    .ctrl_wdata_o  (ctrl_wdata),
    .ctrl_rvalid_i (ctrl_rvalid),
    .ctrl_rdata_i  (ctrl_rdata)
  );

  // Responses may remain at the edges after the unit is quiet.
  assign idle_o = unit_idle && !nic_aw_valid_i && !nic_w_valid_i && !nic_b_valid_o && !nic_ar_valid_i && !nic_r_valid_o && !host_aw_valid_o
    && !host_w_valid_o && !host_ar_valid_o && !ctrl_aw_valid_i && !ctrl_b_valid_o && !ctrl_ar_valid_i && !ctrl_r_valid_o
    && !her_valid_i && !feedback_valid_o && !send_tvalid_o;

  // The command has fields that packets do not need, and AXI tells the start of a burst.
  logic unused;
  assign unused = ^{send, send_first, host_write_bytes, host_write_first};

endmodule
