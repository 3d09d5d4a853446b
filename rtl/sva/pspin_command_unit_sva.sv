// SPDX-License-Identifier: Apache-2.0
// Invariants of the command unit: a command goes to an engine with a credit, each is answered once by its slot, and
// offers to NIC and host are stable.
module pspin_command_unit_sva
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters = 4,
  parameter int unsigned Hpus     = 8,
  parameter int unsigned Slots    = 4
) (
  input logic                                     clk_i,
  input logic                                     rst_ni,
  input logic [2:0]                               credit_o,
  input logic [Clusters-1:0]                      command_valid_i,
  input logic [Clusters-1:0]                      command_ready_o,
  input command_t [Clusters-1:0]                  command_i,
  input logic                                     response_valid_o,
  input response_t                                response_o,
  input logic                                     send_valid_o,
  input logic                                     send_ready_i,
  input command_t                                 send_command_o,
  input logic [511:0]                             send_data_o,
  input logic [6:0]                               send_bytes_o,
  input logic                                     send_last_o,
  input logic                                     host_write_valid_o,
  input logic                                     host_write_ready_i,
  input logic [63:0]                              host_write_address_o,
  input logic [511:0]                             host_write_data_o,
  input logic                                     host_write_last_o,
  input logic [1:0]                               host_write_id_o,
  input logic                                     host_read_valid_o,
  input logic                                     host_read_ready_i,
  input logic [63:0]                              host_read_address_o,
  input logic [1:0]                               host_read_id_o
);

  default clocking @(posedge clk_i);
  endclocking
  default disable iff (!rst_ni);

  // Commands accepted and not answered.
  logic [Clusters-1:0][Hpus-1:0][Slots-1:0] busy_q, begins, ends;
  logic                                     has_credit;

  always_comb begin
    begins     = '0;
    ends       = '0;
    has_credit = 1'b1;
    for (int unsigned c = 0; c < Clusters; c++) begin
      if (command_valid_i[c] && command_ready_o[c]) begin
        begins[command_i[c].hpu.cluster][command_i[c].hpu.hpu][command_i[c].slot] = 1'b1;
        if (!credit_o[engine_of(command_i[c].kind)]) has_credit = 1'b0;
      end
    end
    if (response_valid_o) ends[response_o.hpu.cluster][response_o.hpu.hpu][response_o.slot] = 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) busy_q <= '0;
    else busy_q <= (busy_q & ~ends) | begins;
  end

  OneTaken : assert property ($onehot0(command_ready_o) && (command_ready_o & ~command_valid_i) == '0);
  Credit : assert property (has_credit);
  Place : assert property ((begins & busy_q) == '0);
  AnswersOnce : assert property ((ends & ~busy_q) == '0);
  SendStays : assert property (send_valid_o && !send_ready_i |=> send_valid_o
                               && $stable({send_command_o, send_data_o, send_bytes_o, send_last_o}));
  WriteStays : assert property (host_write_valid_o && !host_write_ready_i |=> host_write_valid_o
                                && $stable({host_write_address_o, host_write_data_o, host_write_last_o, host_write_id_o}));
  ReadStays : assert property (host_read_valid_o && !host_read_ready_i |=> host_read_valid_o
                               && $stable({host_read_address_o, host_read_id_o}));

endmodule

bind pspin_command_unit pspin_command_unit_sva #(
  .Clusters(Clusters),
  .Hpus    (Hpus),
  .Slots   (Slots)
) u_sva (.*);
