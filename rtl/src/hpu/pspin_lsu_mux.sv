// SPDX-License-Identifier: Apache-2.0
// Routes an HPU's accesses to the L1 of its cluster, to other memories, or to its driver. Responses are in order,
// because the next access waits while a late response is outstanding. A denied access is never granted.
module pspin_lsu_mux
  import pspin_pkg::*;
(
  input  logic          clk_i,
  input  logic          rst_ni,

  // The data port of the core.
  input  logic          req_i,
  output logic          gnt_o,
  input  word_request_t request_i,
  input  logic          second_i,       // second word of a split access
  output logic          rvalid_o,
  output logic [31:0]   rdata_o,

  // From the protection: about this access.
  input  logic          allowed_i,
  input  logic          is_own_l1_i,
  input  logic [31:0]   common_i,

  // To the recovery: an access fails; stop new requests; cancel those in flight.
  output logic          denied_o,
  output cause_e        denied_cause_o,
  input  logic          stop_i,
  input  logic          abort_i,
  output logic          remote_busy_o,  // an access to other memories is in flight, and not answered in this cycle

  // L1 of the cluster.
  output logic          l1_valid_o,
  input  logic          l1_gnt_i,
  input  logic          l1_rvalid_i,
  input  logic [31:0]   l1_rdata_i,

  // Other memories.
  output logic          pe_valid_o,
  input  logic          pe_ready_i,
  input  logic          pe_rvalid_i,
  input  logic [31:0]   pe_rdata_i,

  // For both.
  output word_request_t request_o,

  // The driver accepts an access at once, if it has this register.
  input  logic          has_register_i,
  output logic          driver_valid_o,
  input  logic          driver_rvalid_i,
  input  logic [31:0]   driver_rdata_i
);

  typedef enum logic [1:0] {
    Nothing,
    L1,
    Remote,
    Driver
  } target_e;

  target_e waits_q;
  logic    asks, allowed, misaligned;

  // A core transfers a word at a time; the check of the first word decides for the whole access.
  assign allowed    = allowed_i || second_i;
  assign misaligned = request_i.atop != AtopNone && request_i.address[1:0] != '0;

  // A requested remote access persists even while the HPU is being stopped.
  logic asked_q;
  assign asks = req_i && (waits_q == Nothing || rvalid_o) && (!stop_i || asked_q);

  logic is_driver;
  assign is_driver      = has_register_i && (!allowed_i || second_i);
  assign l1_valid_o     = asks && !misaligned && !is_driver && allowed && is_own_l1_i;
  assign pe_valid_o     = asks && !misaligned && !is_driver && allowed && !is_own_l1_i;
  assign driver_valid_o = asks && !misaligned && is_driver;
  assign denied_o       = asks && (misaligned || (!is_driver && !allowed));

  always_comb begin
    if (misaligned) denied_cause_o = CauseMisaligned;
    else if (request_i.we && request_i.atop == AtopNone) denied_cause_o = CauseStore;
    else denied_cause_o = CauseLoad;
  end

  always_comb begin
    request_o         = request_i;
    request_o.address = common_i;
  end

  assign gnt_o         = (l1_valid_o && l1_gnt_i) || (pe_valid_o && pe_ready_i) || driver_valid_o;
  assign remote_busy_o = pe_valid_o || (waits_q == Remote && !pe_rvalid_i);

  always_comb begin
    unique case (waits_q)
      L1:      {rvalid_o, rdata_o} = {l1_rvalid_i, l1_rdata_i};
      Remote:  {rvalid_o, rdata_o} = {pe_rvalid_i, pe_rdata_i};
      Driver:  {rvalid_o, rdata_o} = {driver_rvalid_i, driver_rdata_i};
      default: {rvalid_o, rdata_o} = '0;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      waits_q <= Nothing;
      asked_q <= 1'b0;
    end else begin
      asked_q <= pe_valid_o && !pe_ready_i;
      if (l1_valid_o && l1_gnt_i) waits_q <= L1;
      else if (pe_valid_o && pe_ready_i) waits_q <= Remote;
      else if (driver_valid_o) waits_q <= Driver;
      else if (rvalid_o) waits_q <= Nothing;
      if (abort_i && waits_q == Driver) waits_q <= Nothing;
    end
  end

endmodule
