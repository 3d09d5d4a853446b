// SPDX-License-Identifier: Apache-2.0
// Selects packets for the unit (PsPIN III-A) by programmable rulesets, of which the first match wins. A ruleset has
// Rules rules: all of them but the last one, or one of them, must fit; the last one fits the packets that end a message.
// A rule fits if a masked 32-bit word of the first beat, big-endian, lies in its range. Bytes behind the end of a frame
// are 0, so that a mask of 0 with a range from 0 fits every frame.
//
// The driver changes a ruleset only while none of its messages is open.
module pspin_nic_match
  import pspin_pkg::*;
  import pspin_abi_pkg::*;
#(
  parameter int unsigned Rulesets = 4,   // at most 16
  parameter int unsigned Rules    = 4    // from 2 to 15
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  // From pspin_nic_regs: registers of the rulesets, as offsets from the first one.
  input  logic         write_i,
  input  logic [11:0]  address_i,
  input  logic [31:0]  wdata_i,
  output logic [31:0]  rdata_o,

  // First beat of a packet; byte 0 is in the lowest bits. The verdict is combinational.
  input  logic [511:0] header_i,
  input  logic [63:0]  keep_i,
  output logic         match_valid_o,
  output nic_match_t   match_o
);

  localparam int unsigned SetWidth  = Rulesets > 1 ? $clog2(Rulesets) : 1;
  localparam logic [3:0]  Settings  = NicRulesetMode[7:4];

  if (Rulesets > 16 || Rules < 2 || Rules > 15) begin : gen_check
    $fatal(1, "a NIC has up to 16 rulesets of 2 to 15 rules");
  end

  nic_rule_t [Rulesets-1:0][Rules-1:0]       rules_q;
  nic_mode_e [Rulesets-1:0]                  modes_q;
  logic [Rulesets-1:0][ContextWidth-1:0]     contexts_q;
  logic [Rulesets-1:0][SizeWidth-1:0]        transfers_q;

  ///////////////
  // Registers //
  ///////////////

  logic [3:0] set, row;
  logic [1:0] field;
  nic_rule_t  read_rule;
  logic       has_set, has_rule;

  assign set      = address_i[11:8];
  assign row      = address_i[7:4];
  assign field    = address_i[3:2];
  assign has_set  = 32'(set) < Rulesets;
  assign has_rule = 32'(row) < Rules;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      rules_q     <= '0;
      contexts_q  <= '0;
      transfers_q <= '0;
      for (int unsigned i = 0; i < Rulesets; i++) modes_q[i] <= NicUnused;
    end else begin
      for (int unsigned i = 0; i < Rulesets; i++) begin
        for (int unsigned j = 0; j < Rules; j++) begin
          if (write_i && 32'(set) == i && 32'(row) == j) begin
            unique case (field)
              2'(NicRuleWord >> 2):  rules_q[i][j].word  <= wdata_i[3:0];
              2'(NicRuleMask >> 2):  rules_q[i][j].mask  <= wdata_i;
              2'(NicRuleFirst >> 2): rules_q[i][j].first <= wdata_i;
              default:               rules_q[i][j].last  <= wdata_i;
            endcase
          end
        end
        if (write_i && 32'(set) == i && row == Settings) begin
          unique case (field)
            2'(NicRulesetMode >> 2):    modes_q[i]     <= nic_mode_e'(wdata_i[1:0]);
            2'(NicRulesetContext >> 2): contexts_q[i]  <= wdata_i[ContextWidth-1:0];
            default:                    transfers_q[i] <= wdata_i[SizeWidth-1:0];
          endcase
        end
      end
    end
  end

  always_comb begin
    read_rule = '0;
    rdata_o   = '0;
    for (int unsigned j = 0; j < Rules; j++) if (has_set && 32'(row) == j) read_rule = rules_q[SetWidth'(set)][j];
    if (has_set && has_rule) begin
      unique case (field)
        2'(NicRuleWord >> 2):  rdata_o = 32'(read_rule.word);
        2'(NicRuleMask >> 2):  rdata_o = read_rule.mask;
        2'(NicRuleFirst >> 2): rdata_o = read_rule.first;
        default:               rdata_o = read_rule.last;
      endcase
    end else if (has_set && row == Settings) begin
      unique case (field)
        2'(NicRulesetMode >> 2):    rdata_o = 32'(modes_q[SetWidth'(set)]);
        2'(NicRulesetContext >> 2): rdata_o = 32'(contexts_q[SetWidth'(set)]);
        2'(NicRulesetTransfer >> 2): rdata_o = 32'(transfers_q[SetWidth'(set)]);
        default:                    rdata_o = '0;
      endcase
    end
  end

  /////////////
  // Verdict //
  /////////////

  logic [15:0][31:0]              words;
  logic [Rulesets-1:0][Rules-1:0] fits;
  logic [Rulesets-1:0]            chosen;
  logic [SetWidth-1:0]            first;

  always_comb begin
    for (int unsigned i = 0; i < 16; i++) begin
      for (int unsigned j = 0; j < 4; j++) words[i][31-8*j-:8] = keep_i[4*i+j] ? header_i[8*(4*i+j)+:8] : 8'h00;
    end
  end

  for (genvar i = 0; i < Rulesets; i++) begin : gen_set
    for (genvar j = 0; j < Rules; j++) begin : gen_rule
      logic [31:0] word;
      assign word       = words[rules_q[i][j].word] & rules_q[i][j].mask;
      assign fits[i][j] = word >= rules_q[i][j].first && word <= rules_q[i][j].last;
    end
    assign chosen[i] = (modes_q[i] == NicAll && &fits[i][Rules-2:0]) || (modes_q[i] == NicAny && |fits[i][Rules-2:0]);
  end

  pspin_first #(
    .N(Rulesets)
  ) u_first (
    .bits_i (chosen),
    .valid_o(match_valid_o),
    .index_o(first)
  );

  assign match_o.ruleset           = 8'(first);
  assign match_o.eom               = fits[first][Rules-1];
  assign match_o.execution_context = contexts_q[first];
  assign match_o.transfer          = transfers_q[first];

  // Registers are words.
  logic unused;
  assign unused = ^address_i[1:0];

endmodule
