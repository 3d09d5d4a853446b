// SPDX-License-Identifier: Apache-2.0
// Commands that the unit accepts from its HPUs, and notices to the driver on the host: bound, simulation only. Event
// numbers are those of crates/card/pspin-rtl/src/events.rs.
module pspin_observe_unit
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters = 4
) (
  input logic                              clk_i,
  input logic                              rst_ni,
  input logic [Clusters-1:0]               command_valid_i,
  input logic [Clusters-1:0]               command_ready_i,
  input command_t [Clusters-1:0]           command_i,
  input logic [2:0]                        event_valid_i,
  input logic [2:0]                        event_ready_i,
  input driver_event_t [2:0]               event_i,
  input logic [Clusters-1:0]               console_valid_i,
  input logic [Clusters-1:0]               console_ready_i,
  input logic [Clusters-1:0][7:0]          console_char_i,
  input logic [Clusters-1:0][HpuWidth-1:0] console_hpu_i,
  input logic [Clusters-1:0]               terminate_i,
  input cluster_events_t [Clusters-1:0]    cluster_events_i
);

  import "DPI-C" function void pspin_event(
    input int kind, input int unit, input int a, input int b, input int c, input int d, input int e);

  localparam int Command = 21, CommandWords = 22, Notice = 24, NoticeWords = 25, Console = 26, Terminate = 27;
  localparam int Conflicts = 28, Miss = 29;

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      for (int unsigned i = 0; i < Clusters; i++) begin
        if (command_valid_i[i] && command_ready_i[i]) begin
          pspin_event(CommandWords, 32'(command_i[i].hpu), command_i[i].node, command_i[i].flow, command_i[i].user,
                      command_i[i].immediate[31:0], command_i[i].immediate[63:32]);
          pspin_event(Command, 32'(command_i[i].hpu),
                      32'({command_i[i].immediate_size, 7'(command_i[i].has_event), 8'(command_i[i].kind), 8'(command_i[i].slot)}),
                      command_i[i].data.address, command_i[i].data.size, command_i[i].host[31:0], command_i[i].host[63:32]);
        end
        if (console_valid_i[i] && console_ready_i[i]) begin
          pspin_event(Console, 32'({ClusterWidth'(i), console_hpu_i[i]}), 32'(console_char_i[i]), 0, 0, 0, 0);
        end
        if (terminate_i[i]) pspin_event(Terminate, i, 0, 0, 0, 0, 0);
        if (cluster_events_i[i].conflicts != '0) pspin_event(Conflicts, i, 32'(cluster_events_i[i].conflicts), 0, 0, 0, 0);
        if (cluster_events_i[i].misses) pspin_event(Miss, i, 0, 0, 0, 0, 0);
      end
      for (int unsigned i = 0; i < 3; i++) begin
        if (event_valid_i[i] && event_ready_i[i]) begin
          pspin_event(NoticeWords, 32'(event_i[i].hpu), event_i[i].pc, event_i[i].address[31:0], event_i[i].address[63:32], 0, 0);
          pspin_event(Notice, 32'(event_i[i].hpu), 32'(event_i[i].kind), 32'({event_i[i].role, 8'(event_i[i].cause)}),
                      32'(event_i[i].execution_context), event_i[i].message, event_i[i].user);
        end
      end
    end
  end

endmodule

bind pspin_unit pspin_observe_unit #(
  .Clusters(Clusters)
) u_observe (
  .clk_i,
  .rst_ni,
  .command_valid_i (command_valid),
  .command_ready_i (command_ready),
  .command_i       (commands),
  .event_valid_i   (event_valid),
  .event_ready_i   (event_ready),
  .event_i         (events),
  .console_valid_i (console_valid),
  .console_ready_i (console_ready),
  .console_char_i  (console_char),
  .console_hpu_i   (console_hpu),
  .terminate_i     (terminate),
  .cluster_events_i(cluster_events)
);
