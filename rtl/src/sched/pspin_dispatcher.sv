// SPDX-License-Identifier: Apache-2.0
// Chooses the cluster of a task (PsPIN III-B1): the home cluster of its message if that has room, else the one with the
// fewest tasks among those with room, ties to the lowest number. A task without a cluster blocks all tasks behind it.
// Two other policies omit one half of this rule.
module pspin_dispatcher #(
  parameter int unsigned Clusters   = 4,
  parameter int unsigned Tasks      = 20,    // capacity of a cluster
  parameter bit          UsesHome   = 1'b1,  // prefer the home cluster
  parameter bit          UsesOthers = 1'b1,  // allow clusters other than the home cluster
  localparam int unsigned IndexWidth = Clusters > 1 ? $clog2(Clusters) : 1,
  localparam int unsigned TasksWidth = $clog2(Tasks + 1)
) (
  // From the queue engine.
  input  logic                                valid_i,
  output logic                                ready_o,
  input  logic [IndexWidth-1:0]               home_i,

  // From the clusters: room for this task, and number of tasks.
  input  logic [Clusters-1:0]                 has_room_i,
  input  logic [Clusters-1:0][TasksWidth-1:0] tasks_i,

  // To the clusters, one of which accepts the task in this cycle.
  output logic [Clusters-1:0]                 send_o
);

  logic [IndexWidth-1:0] choice;
  logic [TasksWidth-1:0] fewest;

  always_comb begin
    ready_o = 1'b0;
    choice  = home_i;
    fewest  = '1;
    if (UsesHome && has_room_i[home_i]) begin
      ready_o = 1'b1;
    end else if (UsesOthers) begin
      for (int unsigned i = 0; i < Clusters; i++) begin
        if (has_room_i[i] && (!ready_o || tasks_i[i] < fewest)) begin
          ready_o = 1'b1;
          choice  = IndexWidth'(i);
          fewest  = tasks_i[i];
        end
      end
    end
  end

  always_comb begin
    send_o         = '0;
    send_o[choice] = valid_i && ready_o;
  end

endmodule
