// SPDX-License-Identifier: Apache-2.0
// Registers of pspin_nic, and its AXI4-Lite port: an access at a time. Those of the unit are in another clock: their
// accesses go to it through the queues of pspin_nic. A write of part of a word returns SLVERR, as in the unit. Accesses
// of the window wait for the end of the previous one.
module pspin_nic_regs
  import pspin_pkg::*;
  import pspin_abi_pkg::*;
#(
  parameter int unsigned Rulesets = 4,
  parameter int unsigned Rules    = 4
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  // The driver on the host.
  input  logic         aw_valid_i,
  output logic         aw_ready_o,
  input  logic [15:0]  aw_addr_i,
  input  logic         w_valid_i,
  output logic         w_ready_o,
  input  logic [31:0]  w_data_i,
  input  logic [3:0]   w_strb_i,
  output logic         b_valid_o,
  input  logic         b_ready_i,
  output logic [1:0]   b_resp_o,
  input  logic         ar_valid_i,
  output logic         ar_ready_o,
  input  logic [15:0]  ar_addr_i,
  output logic         r_valid_o,
  input  logic         r_ready_i,
  output logic [31:0]  r_data_o,
  output logic [1:0]   r_resp_o,

  // Registers of the unit.
  output logic         unit_write_valid_o,
  input  logic         unit_write_ready_i,
  output logic [15:0]  unit_write_addr_o,
  output logic [31:0]  unit_write_data_o,
  output logic [3:0]   unit_write_strb_o,
  input  logic         unit_b_valid_i,
  output logic         unit_b_ready_o,
  input  logic [1:0]   unit_b_resp_i,
  output logic         unit_ar_valid_o,
  input  logic         unit_ar_ready_i,
  output logic [15:0]  unit_ar_addr_o,
  input  logic         unit_r_valid_i,
  output logic         unit_r_ready_o,
  input  logic [31:0]  unit_r_data_i,
  input  logic [1:0]   unit_r_resp_i,

  // Window to the memories of the unit.
  output logic         window_valid_o,
  input  logic         window_ready_i,
  output nic_window_t  window_o,
  input  logic         window_valid_i,
  output logic         window_ready_o,
  input  logic [511:0] window_data_i,
  input  logic         window_refused_i,

  // Rulesets.
  output logic         rule_write_o,
  output logic [11:0]  rule_address_o,
  output logic [31:0]  rule_wdata_o,
  input  logic [31:0]  rule_rdata_i,

  // Interrupt of the unit, and message to the host.
  input  logic         irq_i,
  output logic         msi_valid_o,
  input  logic         msi_ready_i,

  output logic         enable_o,
  input  logic         idle_i,
  input  logic         matched_i,    // counted events: a packet each
  input  logic         bypassed_i,
  input  logic         sent_i,
  input  logic         forwarded_i,
  input  logic [31:0]  dropped_i     // count
);

  localparam logic [1:0] Okay     = 2'b00;
  localparam logic [1:0] SlaveErr = 2'b10;

  // An access of the NIC's registers takes a cycle, one of the unit's until its response.
  typedef enum logic [2:0] {
    Idle,
    UnitWrite,
    UnitWritten,
    UnitRead,
    UnitAnswer,
    Respond,
    Answer
  } state_e;

  state_e      state_q;
  logic        wrote_q, busy_q, begins_write, begins_read, writes, is_unit;
  logic [15:0] address;

  function automatic logic is_window(logic [15:0] at);
    return at >= NicMemoryAddress[15:0] && at < NicMatched[15:0];
  endfunction

  assign begins_write = state_q == Idle && aw_valid_i && w_valid_i && !(ar_valid_i && wrote_q) && !(busy_q && is_window(aw_addr_i));
  assign begins_read  = state_q == Idle && ar_valid_i && !begins_write && !(busy_q && is_window(ar_addr_i));
  assign address      = begins_write ? aw_addr_i : ar_addr_i;
  assign is_unit      = address < NicId[15:0];
  assign writes       = begins_write && !is_unit && w_strb_i == 4'hF;
  assign aw_ready_o   = begins_write;
  assign w_ready_o    = begins_write;
  assign ar_ready_o   = begins_read;
  assign b_valid_o    = state_q == Respond;
  assign r_valid_o    = state_q == Answer;

  assign unit_write_valid_o = state_q == UnitWrite;
  assign unit_b_ready_o     = state_q == UnitWritten;
  assign unit_ar_valid_o    = state_q == UnitRead;
  assign unit_r_ready_o     = state_q == UnitAnswer;

  logic [31:0] rdata;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      wrote_q <= 1'b0;
    end else begin
      unique case (state_q)
        Idle: begin
          if (begins_write) state_q <= is_unit ? UnitWrite : Respond;
          else if (begins_read) state_q <= is_unit ? UnitRead : Answer;
          if (begins_write || begins_read) wrote_q <= begins_write;
        end
        UnitWrite:   if (unit_write_ready_i) state_q <= UnitWritten;
        UnitWritten: if (unit_b_valid_i) state_q <= Respond;
        UnitRead:    if (unit_ar_ready_i) state_q <= UnitAnswer;
        UnitAnswer:  if (unit_r_valid_i) state_q <= Answer;
        Respond:     if (b_ready_i) state_q <= Idle;
        default:     if (r_ready_i) state_q <= Idle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (begins_write) begin
      unit_write_addr_o <= aw_addr_i;
      unit_write_data_o <= w_data_i;
      unit_write_strb_o <= w_strb_i;
      b_resp_o          <= w_strb_i == 4'hF ? Okay : SlaveErr;
    end else if (unit_b_ready_o && unit_b_valid_i) begin
      b_resp_o <= unit_b_resp_i;
    end
    if (begins_read) begin
      unit_ar_addr_o <= ar_addr_i;
      r_data_o       <= rdata;
      r_resp_o       <= Okay;
    end else if (unit_r_ready_o && unit_r_valid_i) begin
      r_data_o <= unit_r_data_i;
      r_resp_o <= unit_r_resp_i;
    end
  end

  ///////////////
  // Registers //
  ///////////////

  logic [15:0][31:0] data_q;
  logic [31:0]       memory_q, matched_q, bypassed_q, sent_q, forwarded_q;
  logic [6:0]        bytes_q;
  logic              msi_enable_q, msi_waits_q, asks_q, is_write_q, refused_q, is_data, reads_state, starts;

  assign is_data        = address[15:6] == NicMemoryData[15:6];
  assign reads_state    = begins_read && address == NicState[15:0];
  assign starts         = writes && (address == NicMemoryWrite[15:0] || address == NicMemoryRead[15:0]);
  assign rule_write_o   = writes && address >= NicRuleWord[15:0];
  assign rule_address_o = 12'(address - NicRuleWord[15:0]);
  assign rule_wdata_o   = w_data_i;

  assign window_valid_o     = asks_q;
  assign window_o.is_write  = is_write_q;
  assign window_o.address   = memory_q;
  assign window_o.bytes     = bytes_q;
  assign window_o.data      = data_q;
  assign window_ready_o     = 1'b1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      enable_o     <= 1'b0;
      msi_enable_q <= 1'b0;
      memory_q     <= '0;
      bytes_q      <= 7'(BeatBytes);
      data_q       <= '0;
      busy_q       <= 1'b0;
      asks_q       <= 1'b0;
      is_write_q   <= 1'b0;
      refused_q    <= 1'b0;
      matched_q    <= '0;
      bypassed_q   <= '0;
      sent_q       <= '0;
      forwarded_q  <= '0;
    end else begin
      if (writes && address == NicEnable[15:0]) enable_o <= w_data_i[0];
      if (writes && address == NicMsiEnable[15:0]) msi_enable_q <= w_data_i[0];
      if (writes && address == NicMemoryBytes[15:0]) bytes_q <= w_data_i[6:0];
      if (writes && is_data) data_q[address[5:2]] <= w_data_i;
      if (window_valid_i && !is_write_q) data_q <= window_data_i;
      // The window: an access begins with a register, is asked for, and ends with the response of the unit.
      if (starts) begin
        asks_q     <= 1'b1;
        busy_q     <= 1'b1;
        is_write_q <= address == NicMemoryWrite[15:0];
      end else begin
        if (window_ready_i) asks_q <= 1'b0;
        if (window_valid_i) busy_q <= 1'b0;
      end
      if (writes && address == NicMemoryAddress[15:0]) memory_q <= w_data_i;
      else if (window_valid_i) memory_q <= memory_q + 32'(BeatBytes);
      refused_q   <= (window_valid_i && window_refused_i) || (refused_q && !reads_state);
      matched_q   <= matched_q + 32'(matched_i);
      bypassed_q  <= bypassed_q + 32'(bypassed_i);
      sent_q      <= sent_q + 32'(sent_i);
      forwarded_q <= forwarded_q + 32'(forwarded_i);
    end
  end

  // A message for each acknowledged interrupt: the next one waits for MSI_ACK.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      msi_valid_o <= 1'b0;
      msi_waits_q <= 1'b0;
    end else begin
      msi_valid_o <= (msi_valid_o && !msi_ready_i) || (irq_i && msi_enable_q && !msi_waits_q);
      msi_waits_q <= (msi_waits_q || (irq_i && msi_enable_q)) && !(writes && address == NicMsiAck[15:0]);
    end
  end

  always_comb begin
    rdata = '0;
    unique case (address)
      NicId[15:0]:            rdata = AbiNicId;
      NicVersion[15:0]:       rdata = AbiVersion;
      NicRulesets[15:0]:      rdata = Rulesets;
      NicRules[15:0]:         rdata = Rules;
      NicEnable[15:0]:        rdata = 32'(enable_o);
      NicMsiEnable[15:0]:     rdata = 32'(msi_enable_q);
      NicState[15:0]:         rdata = 32'({refused_q, irq_i, idle_i && !busy_q});
      NicMemoryAddress[15:0]: rdata = memory_q;
      NicMemoryBytes[15:0]:   rdata = 32'(bytes_q);
      NicMatched[15:0]:       rdata = matched_q;
      NicBypassed[15:0]:      rdata = bypassed_q;
      NicDropped[15:0]:       rdata = dropped_i;
      NicSent[15:0]:          rdata = sent_q;
      NicForwarded[15:0]:     rdata = forwarded_q;
      default: begin
        if (is_data) rdata = data_q[address[5:2]];
        else if (address >= NicRuleWord[15:0]) rdata = rule_rdata_i;
      end
    endcase
  end

endmodule
