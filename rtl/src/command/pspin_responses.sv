// SPDX-License-Identifier: Apache-2.0
// Responses to commands (PsPIN III-B1): ends of commands queue by kind, are arbitrated round robin, and go to all HPUs,
// one per cycle. An end in cycle T reaches the HPUs in T + ResponseCycles.
module pspin_responses
  import pspin_pkg::*;
#(
  parameter int unsigned ResponseCycles = 2,
  parameter int unsigned Depth          = 4
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  // From the engines: sends, writes and reads of the off-cluster DMA engine, and host-direct commands.
  input  logic [3:0]         end_valid_i,
  output logic [3:0]         end_ready_o,
  input  command_end_t [3:0] end_i,
  input  logic [511:0]       direct_data_i,  // data of a host-direct read

  // To all HPUs.
  output logic               response_valid_o,
  output response_t          response_o,

  output logic               empty_o         // no response is inside
);

  if (ResponseCycles < 1) begin : g_check
    $fatal(1, "a response takes a cycle at least");
  end

  localparam int unsigned Waits = ResponseCycles > 1 ? ResponseCycles - 1 : 0;

  logic [3:0]         valid, ready, empty;
  command_end_t [3:0] ends;
  logic [511:0]       data;
  logic               any;
  logic [1:0]         choice;

  for (genvar i = 0; i < 3; i++) begin : g_kinds
    pspin_fallthrough #(
      .Width ($bits(command_end_t)),
      .Depth (Depth),
      .Cycles(Waits)
    ) u_ends (
      .clk_i,
      .rst_ni,
      .valid_i(end_valid_i[i]),
      .ready_o(end_ready_o[i]),
      .data_i (end_i[i]),
      .valid_o(valid[i]),
      .ready_i(ready[i]),
      .data_o (ends[i]),
      .empty_o(empty[i])
    );
  end

  pspin_fallthrough #(
    .Width ($bits(command_end_t) + 512),
    .Depth (Depth),
    .Cycles(Waits)
  ) u_direct (
    .clk_i,
    .rst_ni,
    .valid_i(end_valid_i[3]),
    .ready_o(end_ready_o[3]),
    .data_i ({end_i[3], direct_data_i}),
    .valid_o(valid[3]),
    .ready_i(ready[3]),
    .data_o ({ends[3], data}),
    .empty_o(empty[3])
  );

  pspin_rr_arbiter #(
    .N(4)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .requests_i(valid),
    .take_i    (1'b1),
    .valid_o   (any),
    .index_o   (choice)
  );

  assign ready = 4'(any) << choice;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) response_valid_o <= 1'b0;
    else response_valid_o <= any;
  end

  always_ff @(posedge clk_i) begin
    if (any) begin
      response_o.hpu        <= ends[choice].hpu;
      response_o.slot       <= ends[choice].slot;
      response_o.is_refused <= ends[choice].is_refused;
      response_o.host       <= ends[choice].host;
      response_o.data       <= data;
    end
  end

  assign empty_o = &empty && end_valid_i == '0 && !response_valid_o;

endmodule
