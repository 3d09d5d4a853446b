// SPDX-License-Identifier: Apache-2.0
// Invariants of the off-cluster DMA engine: offers to the host are stable, data of a write is complete, an event
// accompanies the end of its command, and each command of both directions ends once and returns its credit once.
module pspin_off_cluster_dma_sva
  import pspin_pkg::*;
(
  input logic         clk_i,
  input logic         rst_ni,
  input logic         command_valid_i,
  input command_t     command_i,
  input logic [1:0]   credits_give_o,
  input logic         host_write_valid_o,
  input logic         host_write_ready_i,
  input logic [63:0]  host_write_address_o,
  input logic [31:0]  host_write_size_o,
  input logic [6:0]   host_write_bytes_o,
  input logic         host_write_first_o,
  input logic         host_write_last_o,
  input logic         host_read_valid_o,
  input logic         host_read_ready_i,
  input logic [63:0]  host_read_address_o,
  input logic [31:0]  host_read_size_o,
  input logic [1:0]   end_valid_o,
  input logic [1:0]   event_valid_o
);

  default clocking @(posedge clk_i);
  endclocking
  default disable iff (!rst_ni);

  // Unfinished commands of each direction, those with a credit outstanding, and bytes sent of a write.
  int unsigned open[2], credits[2];
  logic        is_first_q;
  logic [31:0] bytes_q, bytes;
  logic [1:0]  comes;

  assign comes = {command_i.kind == CommandFromHost, command_i.kind == CommandToHost} & {2{command_valid_i}};
  assign bytes = (host_write_first_o ? '0 : bytes_q) + 32'(host_write_bytes_o);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open       <= '{default: 0};
      credits    <= '{default: 0};
      is_first_q <= 1'b1;
    end else begin
      for (int unsigned i = 0; i < 2; i++) begin
        open[i]    <= open[i] + 32'(comes[i]) - 32'(end_valid_o[i]);
        credits[i] <= credits[i] + 32'(comes[i]) - 32'(credits_give_o[i]);
      end
      if (host_write_valid_o && host_write_ready_i) is_first_q <= host_write_last_o;
    end
  end

  always_ff @(posedge clk_i) if (host_write_valid_o && host_write_ready_i) bytes_q <= bytes;

  for (genvar i = 0; i < 2; i++) begin : g_way
    EndsOnce : assert property (!(end_valid_o[i] && open[i] == 0));
    CreditOnce : assert property (!(credits_give_o[i] && credits[i] == 0));
    EventEnds : assert property (event_valid_o[i] |-> end_valid_o[i]);
  end
  First : assert property (host_write_valid_o |-> host_write_first_o == is_first_q);
  Whole : assert property (host_write_valid_o && host_write_last_o |-> bytes == host_write_size_o);
  ReadStays : assert property (host_read_valid_o && !host_read_ready_i |=> host_read_valid_o
                               && $stable({host_read_address_o, host_read_size_o}));
  WriteStays : assert property (host_write_valid_o && !host_write_ready_i |=> host_write_valid_o
                                && $stable({host_write_address_o, host_write_size_o, host_write_bytes_o}));

endmodule

bind pspin_off_cluster_dma pspin_off_cluster_dma_sva u_sva (.*);
