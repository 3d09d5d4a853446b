// SPDX-License-Identifier: Apache-2.0
// Invariants of an HPU's accesses: each goes to one destination, and only where the handler may; each response belongs
// to a granted access; and no request to a memory is withdrawn.
module pspin_lsu_mux_sva
  import pspin_pkg::*;
(
  input logic          clk_i,
  input logic          rst_ni,
  input logic          req_i,
  input logic          gnt_o,
  input logic          second_i,
  input logic          allowed_i,
  input logic          rvalid_o,
  input logic          denied_o,
  input logic          stop_i,
  input logic          abort_i,
  input logic          remote_busy_o,
  input logic          l1_valid_o,
  input logic          pe_valid_o,
  input logic          pe_ready_i,
  input word_request_t request_o,
  input logic          driver_valid_o
);

  default clocking @(posedge clk_i);
  endclocking
  default disable iff (!rst_ni);

  // Outstanding access; one to the driver is cancelled with its handler.
  logic waits_q, of_driver_q, remote_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      waits_q  <= 1'b0;
      remote_q <= 1'b0;
    end else begin
      waits_q  <= gnt_o ? !(of_driver_q && abort_i && waits_q) : waits_q && !rvalid_o && !(of_driver_q && abort_i);
      remote_q <= pe_valid_o && !pe_ready_i;
    end
  end

  always_ff @(posedge clk_i) if (gnt_o) of_driver_q <= driver_valid_o;

  OnePlace : assert property ($onehot0({l1_valid_o, pe_valid_o, driver_valid_o, denied_o}));
  Asked : assert property (gnt_o || denied_o |-> req_i);
  NotDenied : assert property (!(gnt_o && denied_o));
  Allowed : assert property (l1_valid_o || pe_valid_o |-> allowed_i || second_i);
  OneAtATime : assert property (gnt_o |-> !waits_q || rvalid_o);
  Answered : assert property (rvalid_o |-> waits_q);
  Stopped : assert property (stop_i |-> !l1_valid_o && !driver_valid_o && (!pe_valid_o || remote_q));
  Stays : assert property (pe_valid_o && !pe_ready_i |=> pe_valid_o && $stable(request_o));
  Busy : assert property (pe_valid_o |-> remote_busy_o);

endmodule

bind pspin_lsu_mux pspin_lsu_mux_sva u_sva (.*);
