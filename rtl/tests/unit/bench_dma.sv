// SPDX-License-Identifier: Apache-2.0
// DMA engines, their interconnect, the L2 memories and the NIC-host interconnect; the test plays CSCHED, HPUs, NIC and
// host. L1 is only memories with one port for the banks of a beat.
module bench_dma
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters     = 2,
  parameter int unsigned Hpus         = 2,
  parameter int unsigned Latency      = 10,
  parameter int unsigned L1Banks      = 64,
  parameter int unsigned Ports        = 2,
  parameter int unsigned L1Bytes      = 16384,
  parameter int unsigned PacketBanks  = 8,
  parameter int unsigned HandlerBanks = 16,
  parameter int unsigned L2Bytes      = 32768
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,

  // Packets of each cluster.
  input  logic [Clusters-1:0]      packet_valid_i,
  input  logic [31:0]              packet_from_i [Clusters],
  input  logic [31:0]              packet_to_i [Clusters],
  input  logic [SizeWidth-1:0]     packet_size_i [Clusters],
  input  logic [4:0]               packet_place_i [Clusters],
  output logic [Clusters-1:0]      landed_valid_o,
  output logic [4:0]               landed_place_o [Clusters],

  // Copies of the HPUs of each cluster.
  input  logic [Clusters*Hpus-1:0] transfer_valid_i,
  output logic [Clusters*Hpus-1:0] transfer_ready_o,
  input  logic [31:0]              transfer_from_i [Clusters*Hpus],
  input  logic [31:0]              transfer_to_i [Clusters*Hpus],
  input  logic [31:0]              transfer_size_i [Clusters*Hpus],
  output logic [Clusters*Hpus-1:0] transfer_landed_o,

  // NIC, host, and the engines of commands.
  input  logic                     write_valid_i,
  output logic                     write_ready_o,
  input  beat_request_t            write_i,
  output logic                     write_missing_o,
  input  logic                     host_valid_i,
  output logic                     host_ready_o,
  input  beat_request_t            host_i,
  input  logic [2:0]               read_valid_i,
  output logic [2:0]               read_ready_o,
  input  logic [31:0]              read_address_i [3],
  output logic [2:0]               read_rvalid_o,
  output logic [511:0]             read_data_o [3],
  output logic                     read_missing_o,

  // Busy groups of banks, for the model of the DMA interconnect.
  output logic [PacketBanks-1:0]    packet_busy_o,
  output logic [HandlerBanks/8-1:0] handler_busy_o
);

  localparam int unsigned HandlerGroups = HandlerBanks / 8;
  localparam int unsigned L1Groups      = L1Banks / 16;
  localparam int unsigned L1Rows        = L1Bytes / BeatBytes / L1Groups;

  dma_beat_t [1:0]     beat [Clusters];
  logic [Clusters-1:0] beat_turn, dma_write_valid, other_read_valid, other_write_valid;
  logic [1:0]          beat_grant [Clusters];
  logic [511:0]        dma_data [Clusters], other_read_data [Clusters], l1_data [Clusters];
  beat_request_t       dma_write [Clusters], other_write [Clusters], nhi_write;
  beat_request_t       memory_write [3];
  logic [31:0]         other_read_address [Clusters], l1_read_address [Clusters];
  logic [Clusters-1:0] l1_write_valid, l1_write_ready, l1_read_valid, l1_read_ready;
  for (genvar i = 0; i < Clusters; i++) begin : g_cluster
    logic              wide_write_valid, wide_read_valid;
    beat_request_t     wide_write;
    logic [31:0]       wide_read_address;
    logic [511:0]      wide_read_data;

    pspin_cluster_dma #(
      .Hpus   (Hpus),
      .Tasks  (20),
      .Queue  (4),
      .Latency(Latency),
      .L1Banks(L1Banks)
    ) u_dma (
      .clk_i,
      .rst_ni,
      .cluster_i           (ClusterWidth'(i)),
      .packet_valid_i      (packet_valid_i[i]),
      .packet_from_i       (packet_from_i[i]),
      .packet_to_i         (packet_to_i[i]),
      .packet_size_i       (packet_size_i[i]),
      .packet_place_i      (packet_place_i[i]),
      .landed_valid_o      (landed_valid_o[i]),
      .landed_place_o      (landed_place_o[i]),
      .transfer_valid_i    (transfer_valid_i[i*Hpus+:Hpus]),
      .transfer_ready_o    (transfer_ready_o[i*Hpus+:Hpus]),
      .transfer_from_i     (transfer_from_i[i*Hpus+:Hpus]),
      .transfer_to_i       (transfer_to_i[i*Hpus+:Hpus]),
      .transfer_size_i     (transfer_size_i[i*Hpus+:Hpus]),
      .transfer_landed_o   (transfer_landed_o[i*Hpus+:Hpus]),
      .beat_o              (beat[i]),
      .beat_turn_o         (beat_turn[i]),
      .beat_grant_i        (beat_grant[i]),
      .data_i              (dma_data[i]),
      .write_valid_o       (dma_write_valid[i]),
      .write_o             (dma_write[i]),
      .other_read_valid_i  (other_read_valid[i]),
      .other_read_address_i(other_read_address[i]),
      .other_read_data_o   (other_read_data[i]),
      .other_write_valid_i (other_write_valid[i]),
      .other_write_i       (other_write[i]),
      .nhi_write_valid_i   (l1_write_valid[i]),
      .nhi_write_ready_o   (l1_write_ready[i]),
      .nhi_write_i         (nhi_write),
      .nhi_read_valid_i    (l1_read_valid[i]),
      .nhi_read_ready_o    (l1_read_ready[i]),
      .nhi_read_address_i  (l1_read_address[i]),
      .nhi_read_data_o     (l1_data[i]),
      .wide_write_valid_o  (wide_write_valid),
      .wide_write_o        (wide_write),
      .wide_read_valid_o   (wide_read_valid),
      .wide_read_address_o (wide_read_address),
      .wide_read_data_i    (wide_read_data)
    );

    logic              writes_q, reads_q;
    beat_request_t     write_q;
    logic [31:0]       read_address_q, group_q;
    logic [511:0]      group_data [L1Groups];

    always_ff @(posedge clk_i) begin
      writes_q       <= wide_write_valid;
      reads_q        <= wide_read_valid;
      write_q        <= wide_write;
      read_address_q <= wide_read_address;
      group_q        <= read_address_q / BeatBytes % L1Groups;
    end

    for (genvar j = 0; j < L1Groups; j++) begin : g_group
      logic writes, reads;
      assign writes = writes_q && write_q.address / BeatBytes % L1Groups == j;
      assign reads  = reads_q && read_address_q / BeatBytes % L1Groups == j;

      pspin_sram #(
        .Rows (L1Rows),
        .Bytes(BeatBytes)
      ) u_sram (
        .clk_i,
        .req_i  (writes || reads),
        .we_i   (writes),
        .row_i  ($clog2(L1Rows)'((writes ? write_q.address : read_address_q) / BeatBytes / L1Groups)),
        .be_i   (write_q.strobe),
        .wdata_i(write_q.wdata),
        .rdata_o(group_data[j])
      );
    end

    assign wide_read_data = group_data[group_q];
  end

  // ---- L2.
  logic          packet_read_valid, packet_write_valid, handler_read_valid, handler_write_valid;
  logic [31:0]   packet_read_address, handler_read_address, memory_read_address [3];
  logic [511:0]  packet_read_data, handler_read_data, memory_read_data [3];
  beat_request_t packet_write, handler_write;
  logic [2:0]    memory_write_valid, memory_write_ready, memory_read_valid, memory_read_ready;

  assign memory_write_ready[2] = 1'b1;
  assign memory_read_ready[2]  = 1'b1;
  assign memory_read_data[2]   = '0;

  pspin_dma_xbar #(
    .Clusters     (Clusters),
    .PacketGroups (PacketBanks),
    .HandlerGroups(HandlerGroups),
    .L1Groups     (L1Groups)
  ) u_dma_xbar (
    .clk_i,
    .rst_ni,
    .beat_i                (beat),
    .beat_turn_i           (beat_turn),
    .beat_grant_o          (beat_grant),
    .data_o                (dma_data),
    .write_valid_i         (dma_write_valid),
    .write_i               (dma_write),
    .other_read_valid_o    (other_read_valid),
    .other_read_address_o  (other_read_address),
    .other_read_data_i     (other_read_data),
    .other_write_valid_o   (other_write_valid),
    .other_write_o         (other_write),
    .packet_busy_i         (packet_busy_o),
    .packet_read_valid_o   (packet_read_valid),
    .packet_read_address_o (packet_read_address),
    .packet_read_data_i    (packet_read_data),
    .packet_write_valid_o  (packet_write_valid),
    .packet_write_o        (packet_write),
    .handler_busy_i        (handler_busy_o),
    .handler_read_valid_o  (handler_read_valid),
    .handler_read_address_o(handler_read_address),
    .handler_read_data_i   (handler_read_data),
    .handler_write_valid_o (handler_write_valid),
    .handler_write_o       (handler_write)
  );

  pspin_l2 #(
    .Start    (PacketStart),
    .Bytes    (L2Bytes),
    .Banks    (PacketBanks),
    .BankBytes(64),
    .Ports    (Ports)
  ) u_packet (
    .clk_i,
    .rst_ni,
    .a_write_valid_i (memory_write_valid[1]),
    .a_write_ready_o (memory_write_ready[1]),
    .a_write_i       (memory_write[1]),
    .a_read_valid_i  (memory_read_valid[1]),
    .a_read_ready_o  (memory_read_ready[1]),
    .a_read_address_i(memory_read_address[1]),
    .a_read_data_o   (memory_read_data[1]),
    .busy_o          (packet_busy_o),
    .b_read_valid_i  (packet_read_valid),
    .b_read_address_i(packet_read_address),
    .b_read_data_o   (packet_read_data),
    .b_write_valid_i (packet_write_valid),
    .b_write_i       (packet_write),
    .pe_valid_i      (1'b0),
    .pe_ready_o      (),
    .pe_i            ('0),
    .pe_rvalid_o     (),
    .pe_rdata_o      ()
  );

  pspin_l2 #(
    .Start    (HandlerStart),
    .Bytes    (L2Bytes),
    .Banks    (HandlerBanks),
    .BankBytes(8),
    .Ports    (Ports)
  ) u_handler (
    .clk_i,
    .rst_ni,
    .a_write_valid_i (memory_write_valid[0]),
    .a_write_ready_o (memory_write_ready[0]),
    .a_write_i       (memory_write[0]),
    .a_read_valid_i  (memory_read_valid[0]),
    .a_read_ready_o  (memory_read_ready[0]),
    .a_read_address_i(memory_read_address[0]),
    .a_read_data_o   (memory_read_data[0]),
    .busy_o          (handler_busy_o),
    .b_read_valid_i  (handler_read_valid),
    .b_read_address_i(handler_read_address),
    .b_read_data_o   (handler_read_data),
    .b_write_valid_i (handler_write_valid),
    .b_write_i       (handler_write),
    .pe_valid_i      (1'b0),
    .pe_ready_o      (),
    .pe_i            ('0),
    .pe_rvalid_o     (),
    .pe_rdata_o      ()
  );

  pspin_nhi #(
    .Clusters    (Clusters),
    .L1Bytes     (L1Bytes),
    .HandlerBytes(L2Bytes),
    .PacketBytes (L2Bytes),
    .ProgramBytes(0)
  ) u_nhi (
    .clk_i,
    .rst_ni,
    .write_valid_i,
    .write_ready_o,
    .write_i,
    .write_missing_o,
    .host_valid_i,
    .host_ready_o,
    .host_i,
    .read_valid_i,
    .read_ready_o,
    .read_address_i,
    .read_rvalid_o,
    .read_data_o,
    .read_missing_o,
    .l1_write_valid_o     (l1_write_valid),
    .l1_write_ready_i     (l1_write_ready),
    .l1_read_valid_o      (l1_read_valid),
    .l1_read_ready_i      (l1_read_ready),
    .l1_read_address_o    (l1_read_address),
    .l1_read_data_i       (l1_data),
    .memory_write_valid_o (memory_write_valid),
    .memory_write_ready_i (memory_write_ready),
    .memory_write_o       (memory_write),
    .memory_read_valid_o  (memory_read_valid),
    .memory_read_ready_i  (memory_read_ready),
    .memory_read_address_o(memory_read_address),
    .memory_read_data_i   (memory_read_data),
    .l1_write_o           (nhi_write)
  );

endmodule
