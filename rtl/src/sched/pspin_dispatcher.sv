// Chooses the cluster of a task (PsPIN III-B1): the home cluster of its message if that has room, else the cluster with the fewest
// tasks among those with room, and of several the one with the lowest number. A task that has nowhere to go waits, and with it all
// behind it.
module pspin_dispatcher #(
  parameter int unsigned Clusters = 4,
  parameter int unsigned Tasks    = 20,   // that a cluster holds
  parameter int unsigned Width    = 8,    // of a task
  localparam int unsigned ClusterWidth = Clusters > 1 ? $clog2(Clusters) : 1,
  localparam int unsigned TasksWidth   = $clog2(Tasks + 1)
) (
  // From the queue engine.
  input  logic                    valid_i,
  output logic                    ready_o,
  input  logic [ClusterWidth-1:0] home_i,
  input  logic                    pinned_i,  // no other cluster will do
  input  logic [Width-1:0]        task_i,

  // From the clusters: whether each has room for this task, and how many it has.
  input  logic [Clusters-1:0]     has_room_i,
  input  logic [TasksWidth-1:0]   tasks_i [Clusters],

  // To the clusters, one of which takes the task in this cycle.
  output logic [Clusters-1:0]     send_o,
  output logic [Width-1:0]        task_o
);

  logic [ClusterWidth-1:0] choice;
  logic [TasksWidth-1:0]   fewest;
  logic                    found;

  always_comb begin
    found  = 1'b0;
    choice = home_i;
    fewest = '1;
    if (has_room_i[home_i]) begin
      found = 1'b1;
    end else if (!pinned_i) begin
      for (int unsigned i = 0; i < Clusters; i++) begin
        if (has_room_i[i] && (!found || tasks_i[i] < fewest)) begin
          found  = 1'b1;
          choice = ClusterWidth'(i);
          fewest = tasks_i[i];
        end
      end
    end
  end

  assign ready_o = found;
  assign task_o  = task_i;

  always_comb begin
    send_o         = '0;
    send_o[choice] = valid_i && found;
  end

endmodule
