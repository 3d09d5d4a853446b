// SPDX-License-Identifier: Apache-2.0
// Invariants of the host-direct unit: it writes and reads at most a beat, offers only one of both, offers are stable,
// and each command ends once; one of the unit itself has no end, and only such a one can be lost.
module pspin_host_direct_sva
  import pspin_pkg::*;
(
  input logic        clk_i,
  input logic        rst_ni,
  input logic        command_valid_i,
  input logic        is_own_i,
  input logic        credit_give_o,
  input logic        status_take_o,
  input logic        status_lost_o,
  input logic        host_write_valid_o,
  input logic        host_write_ready_i,
  input logic [63:0] host_write_address_o,
  input logic [6:0]  host_write_bytes_o,
  input logic        host_write_own_o,
  input logic        host_read_valid_o,
  input logic        host_read_ready_i,
  input logic [63:0] host_read_address_o,
  input logic [31:0] host_read_size_o,
  input logic        end_valid_o
);

  default clocking @(posedge clk_i);
  endclocking
  default disable iff (!rst_ni);

  int unsigned open, credits, own;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open    <= 0;
      credits <= 0;
      own     <= 0;
    end else begin
      open    <= open + 32'(command_valid_i && !is_own_i) - 32'(end_valid_o);
      credits <= credits + 32'(command_valid_i) - 32'(credit_give_o);
      own     <= own + 32'(status_take_o) - 32'(credit_give_o && !end_valid_o);
    end
  end

  OneAsk : assert property (!(host_write_valid_o && host_read_valid_o));
  OneBeat : assert property ((host_write_valid_o |-> 32'(host_write_bytes_o) <= BeatBytes)
                             and (host_read_valid_o |-> host_read_size_o <= BeatBytes));
  EndsOnce : assert property (!(end_valid_o && open == 0));
  CreditOnce : assert property (!(credit_give_o && credits == 0));
  EndGives : assert property (end_valid_o |-> credit_give_o);
  OwnHasNoEnd : assert property (credit_give_o && !end_valid_o |-> own != 0);
  StatusIsWritten : assert property (status_take_o |-> host_write_valid_o && host_write_ready_i && host_write_own_o);
  Lost : assert property (status_lost_o |-> credit_give_o && !end_valid_o);
  WriteStays : assert property (host_write_valid_o && !host_write_ready_i |=> host_write_valid_o
                                && $stable({host_write_address_o, host_write_bytes_o, host_write_own_o}));
  ReadStays : assert property (host_read_valid_o && !host_read_ready_i |=> host_read_valid_o
                               && $stable({host_read_address_o, host_read_size_o}));

endmodule

bind pspin_host_direct pspin_host_direct_sva u_sva (.*);
