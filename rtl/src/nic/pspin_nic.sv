// SPDX-License-Identifier: Apache-2.0
// Network card around the unit of a machine (PsPIN III-A, Figure 3), with two clocks: clk_i for network, host and
// driver, unit_clk_i for the unit. Packets of the network that match a ruleset go to the unit; all others bypass it to a
// plain NIC, whose packets share the way to the network with those of handlers.
//
// All signals between the clocks pass pspin_cdc_fifo or pspin_sync. Bypassing packets never wait for the unit's clock,
// but they wait behind a packet for which the unit has no room: the streams have back-pressure.
module pspin_nic
  import pspin_pkg::*;
  import pspin_abi_pkg::*;
#(
  parameter int unsigned Width       = 512,  // bits of the network's streams: 64, 128, 256 or 512
  parameter int unsigned Rulesets    = 4,
  parameter int unsigned Rules       = 4,    // rules of a ruleset; the last one marks the end of a message
  parameter int unsigned HostIdWidth = 3
) (
  input  logic                    clk_i,
  input  logic                    unit_clk_i,
  input  logic                    rst_ni,          // at any time, for both clocks

  // The network: AXI-Stream, byte 0 first. user marks a bad packet with its last beat.
  input  logic                    rx_valid_i,
  output logic                    rx_ready_o,
  input  logic [Width-1:0]        rx_data_i,
  input  logic [Width/8-1:0]      rx_keep_i,
  input  logic                    rx_last_i,
  input  logic                    rx_user_i,
  output logic                    tx_valid_o,
  input  logic                    tx_ready_i,
  output logic [Width-1:0]        tx_data_o,
  output logic [Width/8-1:0]      tx_keep_o,
  output logic                    tx_last_o,

  // The plain NIC: packets to its receiver, and from its sender.
  output logic                    bypass_rx_valid_o,
  input  logic                    bypass_rx_ready_i,
  output logic [Width-1:0]        bypass_rx_data_o,
  output logic [Width/8-1:0]      bypass_rx_keep_o,
  output logic                    bypass_rx_last_o,
  output logic                    bypass_rx_user_o,
  input  logic                    bypass_tx_valid_i,
  output logic                    bypass_tx_ready_o,
  input  logic [Width-1:0]        bypass_tx_data_i,
  input  logic [Width/8-1:0]      bypass_tx_keep_i,
  input  logic                    bypass_tx_last_i,

  // Driver on the host: AXI4-Lite to the registers of the unit and, from NicId on, of the NIC; and the interrupt, as a
  // level and as a message.
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
  output logic                    msi_valid_o,
  input  logic                    msi_ready_i,

  // Host memory: AXI4, as of pspin_top.
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
  input  logic                    host_r_last_i
);

  // Depths of the queues: enough for a beat in each cycle of the slower clock, in spite of the pointers' way.
  localparam int unsigned DataDepth = 16;
  localparam int unsigned CtrlDepth = 2;

  if (Width > 512 || Width < 64 || 512 % Width != 0) begin : gen_check_width
    $fatal(1, "the streams of a NIC have 64, 128, 256 or 512 bits");
  end

  logic rst_n, unit_rst_n;

  pspin_reset_sync u_reset (
    .clk_i,
    .rst_ni,
    .rst_no(rst_n)
  );

  pspin_reset_sync u_unit_reset (
    .clk_i (unit_clk_i),
    .rst_ni,
    .rst_no(unit_rst_n)
  );

  ///////////////////////////////
  // Packets from the network //
  ///////////////////////////////

  typedef struct packed {
    logic [511:0] data;
    logic [63:0]  keep;
    logic         last;
    logic         is_bad;
    nic_match_t   match;
  } rx_beat_t;

  rx_beat_t   rx, unit_rx;
  nic_match_t match, match_q;
  logic       rx_ready, rx_valid, wide_ready, is_first_q, fits, for_unit, for_unit_q, enable, to_unit_ready, to_bypass_ready;
  logic       unit_rx_valid, unit_rx_ready;

  // No packet is taken in a reset.
  assign rx_ready_o = wide_ready && rst_n;

  pspin_nic_widen #(
    .Width(Width)
  ) u_rx (
    .clk_i,
    .rst_ni (rst_n),
    .valid_i(rx_valid_i),
    .ready_o(wide_ready),
    .data_i (rx_data_i),
    .keep_i (rx_keep_i),
    .last_i (rx_last_i),
    .user_i (rx_user_i),
    .valid_o(rx_valid),
    .ready_i(rx_ready),
    .data_o (rx.data),
    .keep_o (rx.keep),
    .last_o (rx.last),
    .user_o (rx.is_bad)
  );

  logic        rule_write;
  logic [11:0] rule_address;
  logic [31:0] rule_wdata, rule_rdata;

  pspin_nic_match #(
    .Rulesets(Rulesets),
    .Rules   (Rules)
  ) u_match (
    .clk_i,
    .rst_ni       (rst_n),
    .write_i      (rule_write),
    .address_i    (rule_address),
    .wdata_i      (rule_wdata),
    .rdata_o      (rule_rdata),
    .header_i     (rx.data),
    .keep_i       (rx.keep),
    .match_valid_o(fits),
    .match_o      (match)
  );

  // The first beat of a packet decides about all of it.
  assign for_unit = is_first_q ? fits && enable : for_unit_q;
  assign rx.match = is_first_q ? match : match_q;
  assign rx_ready = for_unit ? to_unit_ready : to_bypass_ready;

  always_ff @(posedge clk_i or negedge rst_n) begin
    if (!rst_n) is_first_q <= 1'b1;
    else if (rx_valid && rx_ready) is_first_q <= rx.last;
  end

  always_ff @(posedge clk_i) begin
    if (rx_valid && rx_ready) begin
      for_unit_q <= for_unit;
      match_q    <= rx.match;
    end
  end

  pspin_cdc_fifo #(
    .Width($bits(rx_beat_t)),
    .Depth(DataDepth)
  ) u_to_unit (
    .w_clk_i  (clk_i),
    .w_rst_ni (rst_n),
    .w_valid_i(rx_valid && for_unit),
    .w_ready_o(to_unit_ready),
    .w_data_i (rx),
    .r_clk_i  (unit_clk_i),
    .r_rst_ni (unit_rst_n),
    .r_valid_o(unit_rx_valid),
    .r_ready_i(unit_rx_ready),
    .r_data_o (unit_rx)
  );

  // The short last beat of a frame arrives while a full one leaves part by part.
  logic         bypass_valid, bypass_take, bypass_last, bypass_bad;
  logic [511:0] bypass_data;
  logic [63:0]  bypass_keep;
  logic [1:0]   unused_count;

  pspin_fifo #(
    .Width(512 + 64 + 2),
    .Depth(2)
  ) u_bypass (
    .clk_i,
    .rst_ni (rst_n),
    .valid_i(rx_valid && !for_unit),
    .ready_o(to_bypass_ready),
    .data_i ({rx.data, rx.keep, rx.last, rx.is_bad}),
    .valid_o(bypass_valid),
    .ready_i(bypass_take),
    .data_o ({bypass_data, bypass_keep, bypass_last, bypass_bad}),
    .count_o(unused_count)
  );

  pspin_nic_narrow #(
    .Width(Width)
  ) u_bypass_rx (
    .clk_i,
    .rst_ni (rst_n),
    .valid_i(bypass_valid),
    .ready_o(bypass_take),
    .data_i (bypass_data),
    .keep_i (bypass_keep),
    .last_i (bypass_last),
    .user_i (bypass_bad),
    .valid_o(bypass_rx_valid_o),
    .ready_i(bypass_rx_ready_i),
    .data_o (bypass_rx_data_o),
    .keep_o (bypass_rx_keep_o),
    .last_o (bypass_rx_last_o),
    .user_o (bypass_rx_user_o)
  );

  /////////////////////////////
  // Packets to the network //
  /////////////////////////////

  typedef struct packed {
    logic [511:0] data;
    logic [6:0]   bytes;
    logic         last;
    logic [31:0]  node;
  } tx_beat_t;

  tx_beat_t     unit_tx, sent;
  command_t     command;
  logic         unit_tx_valid, unit_tx_ready, sent_valid, sent_ready, host_valid, host_ready, host_last, host_user, counts_sent, counts_host;
  logic         bypass_ready, wide_valid, wide_take, wide_last, tx_user;
  logic [511:0] host_data, wide_data;
  logic [63:0]  host_keep, wide_keep;
  logic [31:0]  wide_dest;

  pspin_cdc_fifo #(
    .Width($bits(tx_beat_t)),
    .Depth(DataDepth)
  ) u_from_unit (
    .w_clk_i  (unit_clk_i),
    .w_rst_ni (unit_rst_n),
    .w_valid_i(unit_tx_valid),
    .w_ready_o(unit_tx_ready),
    .w_data_i (unit_tx),
    .r_clk_i  (clk_i),
    .r_rst_ni (rst_n),
    .r_valid_o(sent_valid),
    .r_ready_i(sent_ready),
    .r_data_o (sent)
  );

  assign bypass_tx_ready_o = bypass_ready && rst_n;

  pspin_nic_widen #(
    .Width(Width)
  ) u_bypass_tx (
    .clk_i,
    .rst_ni (rst_n),
    .valid_i(bypass_tx_valid_i),
    .ready_o(bypass_ready),
    .data_i (bypass_tx_data_i),
    .keep_i (bypass_tx_keep_i),
    .last_i (bypass_tx_last_i),
    .user_i (1'b0),
    .valid_o(host_valid),
    .ready_i(host_ready),
    .data_o (host_data),
    .keep_o (host_keep),
    .last_o (host_last),
    .user_o (host_user)
  );

  always_comb begin
    command      = '0;
    command.node = sent.node;
  end

  pspin_nic_outbound u_outbound (
    .clk_i,
    .rst_ni        (rst_n),
    .send_valid_i  (sent_valid),
    .send_ready_o  (sent_ready),
    .send_command_i(command),
    .send_data_i   (sent.data),
    .send_bytes_i  (sent.bytes),
    .send_last_i   (sent.last),
    .host_valid_i  (host_valid),
    .host_ready_o  (host_ready),
    .host_data_i   (host_data),
    .host_keep_i   (host_keep),
    .host_last_i   (host_last),
    .host_dest_i   ('0),
    .tx_valid_o    (wide_valid),
    .tx_ready_i    (wide_take),
    .tx_data_o     (wide_data),
    .tx_keep_o     (wide_keep),
    .tx_last_o     (wide_last),
    .tx_dest_o     (wide_dest),
    .sent_o        (counts_sent),
    .host_o        (counts_host)
  );

  pspin_nic_narrow #(
    .Width(Width)
  ) u_tx (
    .clk_i,
    .rst_ni (rst_n),
    .valid_i(wide_valid),
    .ready_o(wide_take),
    .data_i (wide_data),
    .keep_i (wide_keep),
    .last_i (wide_last),
    .user_i (1'b0),
    .valid_o(tx_valid_o),
    .ready_i(tx_ready_i),
    .data_o (tx_data_o),
    .keep_o (tx_keep_o),
    .last_o (tx_last_o),
    .user_o (tx_user)
  );

  ///////////////
  // Registers //
  ///////////////

  typedef struct packed {
    logic [15:0] address;
    logic [31:0] data;
    logic [3:0]  strobe;
  } write_t;

  typedef struct packed {
    logic [31:0] data;
    logic [1:0]  resp;
  } answer_t;

  typedef struct packed {
    logic [511:0] data;
    logic         is_refused;
  } window_answer_t;

  write_t         write, unit_write;
  answer_t        answer, unit_answer;
  nic_window_t    window, unit_window;
  window_answer_t window_answer, unit_window_answer;
  logic           write_valid, write_ready, unit_write_valid, b_valid, b_ready, unit_b_valid, unit_b_ready;
  logic           ar_valid, ar_ready, unit_ar_valid, unit_ar_ready, r_valid, r_ready, unit_r_valid, unit_r_ready;
  logic           window_valid, window_ready, unit_window_valid, unit_window_ready;
  logic           answer_valid, answer_ready, unit_answer_valid, unit_answer_ready;
  logic           unit_aw_ready, unit_w_ready, irq, unit_irq, idle, unit_idle, unit_dropped;
  logic [1:0]     b_resp, unit_b_resp;
  logic [15:0]    ar_addr, unit_ar_addr;
  logic [31:0]    dropped;

  pspin_nic_regs #(
    .Rulesets(Rulesets),
    .Rules   (Rules)
  ) u_regs (
    .clk_i,
    .rst_ni            (rst_n),
    .aw_valid_i        (ctrl_aw_valid_i && rst_n),
    .aw_ready_o        (ctrl_aw_ready_o),
    .aw_addr_i         (ctrl_aw_addr_i),
    .w_valid_i         (ctrl_w_valid_i),
    .w_ready_o         (ctrl_w_ready_o),
    .w_data_i          (ctrl_w_data_i),
    .w_strb_i          (ctrl_w_strb_i),
    .b_valid_o         (ctrl_b_valid_o),
    .b_ready_i         (ctrl_b_ready_i),
    .b_resp_o          (ctrl_b_resp_o),
    .ar_valid_i        (ctrl_ar_valid_i && rst_n),
    .ar_ready_o        (ctrl_ar_ready_o),
    .ar_addr_i         (ctrl_ar_addr_i),
    .r_valid_o         (ctrl_r_valid_o),
    .r_ready_i         (ctrl_r_ready_i),
    .r_data_o          (ctrl_r_data_o),
    .r_resp_o          (ctrl_r_resp_o),
    .unit_write_valid_o(write_valid),
    .unit_write_ready_i(write_ready),
    .unit_write_addr_o (write.address),
    .unit_write_data_o (write.data),
    .unit_write_strb_o (write.strobe),
    .unit_b_valid_i    (b_valid),
    .unit_b_ready_o    (b_ready),
    .unit_b_resp_i     (b_resp),
    .unit_ar_valid_o   (ar_valid),
    .unit_ar_ready_i   (ar_ready),
    .unit_ar_addr_o    (ar_addr),
    .unit_r_valid_i    (r_valid),
    .unit_r_ready_o    (r_ready),
    .unit_r_data_i     (answer.data),
    .unit_r_resp_i     (answer.resp),
    .window_valid_o    (window_valid),
    .window_ready_i    (window_ready),
    .window_o          (window),
    .window_valid_i    (answer_valid),
    .window_ready_o    (answer_ready),
    .window_data_i     (window_answer.data),
    .window_refused_i  (window_answer.is_refused),
    .rule_write_o      (rule_write),
    .rule_address_o    (rule_address),
    .rule_wdata_o      (rule_wdata),
    .rule_rdata_i      (rule_rdata),
    .irq_i             (irq),
    .msi_valid_o,
    .msi_ready_i,
    .enable_o          (enable),
    .idle_i            (idle),
    .matched_i         (rx_valid && rx_ready && rx.last && for_unit),
    .bypassed_i        (rx_valid && rx_ready && rx.last && !for_unit),
    .sent_i            (counts_sent),
    .forwarded_i       (counts_host),
    .dropped_i         (dropped)
  );

  assign irq_o = irq;

  pspin_cdc_fifo #(.Width($bits(write_t)), .Depth(CtrlDepth)) u_write (
    .w_clk_i(clk_i), .w_rst_ni(rst_n), .w_valid_i(write_valid), .w_ready_o(write_ready), .w_data_i(write),
    .r_clk_i(unit_clk_i), .r_rst_ni(unit_rst_n), .r_valid_o(unit_write_valid), .r_ready_i(unit_aw_ready && unit_w_ready), .r_data_o(unit_write)
  );

  pspin_cdc_fifo #(.Width(2), .Depth(CtrlDepth)) u_b (
    .w_clk_i(unit_clk_i), .w_rst_ni(unit_rst_n), .w_valid_i(unit_b_valid), .w_ready_o(unit_b_ready), .w_data_i(unit_b_resp),
    .r_clk_i(clk_i), .r_rst_ni(rst_n), .r_valid_o(b_valid), .r_ready_i(b_ready), .r_data_o(b_resp)
  );

  pspin_cdc_fifo #(.Width(16), .Depth(CtrlDepth)) u_ar (
    .w_clk_i(clk_i), .w_rst_ni(rst_n), .w_valid_i(ar_valid), .w_ready_o(ar_ready), .w_data_i(ar_addr),
    .r_clk_i(unit_clk_i), .r_rst_ni(unit_rst_n), .r_valid_o(unit_ar_valid), .r_ready_i(unit_ar_ready), .r_data_o(unit_ar_addr)
  );

  pspin_cdc_fifo #(.Width($bits(answer_t)), .Depth(CtrlDepth)) u_r (
    .w_clk_i(unit_clk_i), .w_rst_ni(unit_rst_n), .w_valid_i(unit_r_valid), .w_ready_o(unit_r_ready), .w_data_i(unit_answer),
    .r_clk_i(clk_i), .r_rst_ni(rst_n), .r_valid_o(r_valid), .r_ready_i(r_ready), .r_data_o(answer)
  );

  pspin_cdc_fifo #(.Width($bits(nic_window_t)), .Depth(CtrlDepth)) u_window (
    .w_clk_i(clk_i), .w_rst_ni(rst_n), .w_valid_i(window_valid), .w_ready_o(window_ready), .w_data_i(window),
    .r_clk_i(unit_clk_i), .r_rst_ni(unit_rst_n), .r_valid_o(unit_window_valid), .r_ready_i(unit_window_ready), .r_data_o(unit_window)
  );

  pspin_cdc_fifo #(.Width($bits(window_answer_t)), .Depth(CtrlDepth)) u_window_answer (
    .w_clk_i(unit_clk_i), .w_rst_ni(unit_rst_n), .w_valid_i(unit_answer_valid), .w_ready_o(unit_answer_ready), .w_data_i(unit_window_answer),
    .r_clk_i(clk_i), .r_rst_ni(rst_n), .r_valid_o(answer_valid), .r_ready_i(answer_ready), .r_data_o(window_answer)
  );

  // Levels, from registers.
  logic irq_q, idle_q;

  always_ff @(posedge unit_clk_i or negedge unit_rst_n) begin
    if (!unit_rst_n) {irq_q, idle_q} <= '0;
    else {irq_q, idle_q} <= {unit_irq, unit_idle && !unit_tx_valid};
  end

  pspin_sync #(
    .Width(2)
  ) u_levels (
    .clk_i,
    .rst_ni(rst_n),
    .data_i({irq_q, idle_q}),
    .data_o({irq, idle})
  );

  pspin_cdc_count #(
    .Width(32)
  ) u_dropped (
    .w_clk_i  (unit_clk_i),
    .w_rst_ni (unit_rst_n),
    .w_event_i(unit_dropped),
    .r_clk_i  (clk_i),
    .r_rst_ni (rst_n),
    .r_count_o(dropped)
  );

  /////////////////
  // Host memory //
  /////////////////

  typedef struct packed {
    logic [HostIdWidth-1:0] id;
    logic [ContextWidth:0]  user;
    logic [63:0]            addr;
    logic [7:0]             len;
    logic [2:0]             size;
    logic [1:0]             burst;
  } host_address_t;

  typedef struct packed {
    logic [511:0] data;
    logic [63:0]  strb;
    logic         last;
  } host_write_t;

  typedef struct packed {
    logic [HostIdWidth-1:0] id;
    logic [1:0]             resp;
  } host_written_t;

  typedef struct packed {
    logic [HostIdWidth-1:0] id;
    logic [511:0]           data;
    logic [1:0]             resp;
    logic                   last;
  } host_read_t;

  host_address_t host_aw, unit_aw, host_ar, unit_host_ar;
  host_write_t   host_w, unit_w;
  host_written_t unit_b;
  host_read_t    unit_r;
  logic          unit_aw_valid, unit_host_aw_ready, unit_w_valid, unit_host_w_ready, unit_host_b_valid, unit_host_b_ready;
  logic          unit_host_ar_valid, unit_host_ar_ready, unit_host_r_valid, unit_host_r_ready, host_b_ready, host_r_ready;

  assign {host_aw_id_o, host_aw_user_o, host_aw_addr_o, host_aw_len_o, host_aw_size_o, host_aw_burst_o} = host_aw;
  assign {host_ar_id_o, host_ar_user_o, host_ar_addr_o, host_ar_len_o, host_ar_size_o, host_ar_burst_o} = host_ar;
  assign {host_w_data_o, host_w_strb_o, host_w_last_o} = host_w;
  assign host_b_ready_o = host_b_ready && rst_n;
  assign host_r_ready_o = host_r_ready && rst_n;

  pspin_cdc_fifo #(.Width($bits(host_address_t)), .Depth(DataDepth)) u_host_aw (
    .w_clk_i(unit_clk_i), .w_rst_ni(unit_rst_n), .w_valid_i(unit_aw_valid), .w_ready_o(unit_host_aw_ready), .w_data_i(unit_aw),
    .r_clk_i(clk_i), .r_rst_ni(rst_n), .r_valid_o(host_aw_valid_o), .r_ready_i(host_aw_ready_i), .r_data_o(host_aw)
  );

  pspin_cdc_fifo #(.Width($bits(host_write_t)), .Depth(DataDepth)) u_host_w (
    .w_clk_i(unit_clk_i), .w_rst_ni(unit_rst_n), .w_valid_i(unit_w_valid), .w_ready_o(unit_host_w_ready), .w_data_i(unit_w),
    .r_clk_i(clk_i), .r_rst_ni(rst_n), .r_valid_o(host_w_valid_o), .r_ready_i(host_w_ready_i), .r_data_o(host_w)
  );

  pspin_cdc_fifo #(.Width($bits(host_written_t)), .Depth(DataDepth)) u_host_b (
    .w_clk_i(clk_i), .w_rst_ni(rst_n), .w_valid_i(host_b_valid_i), .w_ready_o(host_b_ready), .w_data_i({host_b_id_i, host_b_resp_i}),
    .r_clk_i(unit_clk_i), .r_rst_ni(unit_rst_n), .r_valid_o(unit_host_b_valid), .r_ready_i(unit_host_b_ready), .r_data_o(unit_b)
  );

  pspin_cdc_fifo #(.Width($bits(host_address_t)), .Depth(DataDepth)) u_host_ar (
    .w_clk_i(unit_clk_i), .w_rst_ni(unit_rst_n), .w_valid_i(unit_host_ar_valid), .w_ready_o(unit_host_ar_ready), .w_data_i(unit_host_ar),
    .r_clk_i(clk_i), .r_rst_ni(rst_n), .r_valid_o(host_ar_valid_o), .r_ready_i(host_ar_ready_i), .r_data_o(host_ar)
  );

  pspin_cdc_fifo #(.Width($bits(host_read_t)), .Depth(DataDepth)) u_host_r (
    .w_clk_i(clk_i), .w_rst_ni(rst_n), .w_valid_i(host_r_valid_i), .w_ready_o(host_r_ready),
    .w_data_i({host_r_id_i, host_r_data_i, host_r_resp_i, host_r_last_i}),
    .r_clk_i(unit_clk_i), .r_rst_ni(unit_rst_n), .r_valid_o(unit_host_r_valid), .r_ready_i(unit_host_r_ready), .r_data_o(unit_r)
  );

  //////////////
  // The unit //
  //////////////

  pspin_nic_unit #(
    .Rulesets   (Rulesets),
    .HostIdWidth(HostIdWidth)
  ) u_unit (
    .clk_i           (unit_clk_i),
    .rst_ni          (unit_rst_n),
    .window_valid_i  (unit_window_valid),
    .window_ready_o  (unit_window_ready),
    .window_i        (unit_window),
    .window_valid_o  (unit_answer_valid),
    .window_ready_i  (unit_answer_ready),
    .window_data_o   (unit_window_answer.data),
    .window_refused_o(unit_window_answer.is_refused),
    .ctrl_aw_valid_i (unit_write_valid),
    .ctrl_aw_ready_o (unit_aw_ready),
    .ctrl_aw_addr_i  (unit_write.address),
    .ctrl_w_valid_i  (unit_write_valid),
    .ctrl_w_ready_o  (unit_w_ready),
    .ctrl_w_data_i   (unit_write.data),
    .ctrl_w_strb_i   (unit_write.strobe),
    .ctrl_b_valid_o  (unit_b_valid),
    .ctrl_b_ready_i  (unit_b_ready),
    .ctrl_b_resp_o   (unit_b_resp),
    .ctrl_ar_valid_i (unit_ar_valid),
    .ctrl_ar_ready_o (unit_ar_ready),
    .ctrl_ar_addr_i  (unit_ar_addr),
    .ctrl_r_valid_o  (unit_r_valid),
    .ctrl_r_ready_i  (unit_r_ready),
    .ctrl_r_data_o   (unit_answer.data),
    .ctrl_r_resp_o   (unit_answer.resp),
    .irq_o           (unit_irq),
    .rx_valid_i      (unit_rx_valid),
    .rx_ready_o      (unit_rx_ready),
    .rx_data_i       (unit_rx.data),
    .rx_keep_i       (unit_rx.keep),
    .rx_last_i       (unit_rx.last),
    .rx_user_i       (unit_rx.is_bad),
    .rx_match_i      (unit_rx.match),
    .tx_valid_o      (unit_tx_valid),
    .tx_ready_i      (unit_tx_ready),
    .tx_data_o       (unit_tx.data),
    .tx_bytes_o      (unit_tx.bytes),
    .tx_last_o       (unit_tx.last),
    .tx_node_o       (unit_tx.node),
    .host_aw_valid_o (unit_aw_valid),
    .host_aw_ready_i (unit_host_aw_ready),
    .host_aw_id_o    (unit_aw.id),
    .host_aw_user_o  (unit_aw.user),
    .host_aw_addr_o  (unit_aw.addr),
    .host_aw_len_o   (unit_aw.len),
    .host_aw_size_o  (unit_aw.size),
    .host_aw_burst_o (unit_aw.burst),
    .host_w_valid_o  (unit_w_valid),
    .host_w_ready_i  (unit_host_w_ready),
    .host_w_data_o   (unit_w.data),
    .host_w_strb_o   (unit_w.strb),
    .host_w_last_o   (unit_w.last),
    .host_b_valid_i  (unit_host_b_valid),
    .host_b_ready_o  (unit_host_b_ready),
    .host_b_id_i     (unit_b.id),
    .host_b_resp_i   (unit_b.resp),
    .host_ar_valid_o (unit_host_ar_valid),
    .host_ar_ready_i (unit_host_ar_ready),
    .host_ar_id_o    (unit_host_ar.id),
    .host_ar_user_o  (unit_host_ar.user),
    .host_ar_addr_o  (unit_host_ar.addr),
    .host_ar_len_o   (unit_host_ar.len),
    .host_ar_size_o  (unit_host_ar.size),
    .host_ar_burst_o (unit_host_ar.burst),
    .host_r_valid_i  (unit_host_r_valid),
    .host_r_ready_o  (unit_host_r_ready),
    .host_r_id_i     (unit_r.id),
    .host_r_data_i   (unit_r.data),
    .host_r_resp_i   (unit_r.resp),
    .host_r_last_i   (unit_r.last),
    .dropped_o       (unit_dropped),
    .idle_o          (unit_idle)
  );

  // A card with one port ignores the destination node, and the sender marks no packet as bad.
  logic unused;
  assign unused = ^{wide_dest, host_user, tx_user, unused_count};

endmodule
