// SPDX-License-Identifier: Apache-2.0
// Invariants of the interconnect of NIC and host: both alternate at a write port, a beat goes to one memory, one reader
// at a time is served at a memory, and each requested beat arrives once.
module pspin_nhi_sva #(
  parameter int unsigned Clusters = 4
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic                write_valid_i,
  input logic                write_ready_o,
  input logic                write_missing_o,
  input logic                host_valid_i,
  input logic                host_ready_o,
  input logic [2:0]          read_valid_i,
  input logic [2:0]          read_ready_o,
  input logic [2:0]          read_rvalid_o,
  input logic [Clusters-1:0] l1_write_valid_o,
  input logic [Clusters-1:0] l1_write_ready_i,
  input logic [Clusters-1:0] l1_read_valid_o,
  input logic [2:0]          memory_write_valid_o,
  input logic [2:0]          memory_write_ready_i,
  input logic [2:0]          memory_read_valid_o,
  input logic [2:0]          grant [3 + Clusters],
  input logic [2:0]          valid_q,
  input logic [2+Clusters:0] held,
  input logic [3:0]          nic_port,
  input logic [3:0]          host_port,
  input logic [3:0]          nic_taken,
  input logic [3:0]          host_taken
);

  default clocking @(posedge clk_i);
  endclocking
  default disable iff (!rst_ni);

  // Outstanding beats of each reader.
  int unsigned owed[3];
  logic        is_owed;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) owed <= '{default: 0};
    else for (int unsigned i = 0; i < 3; i++) owed[i] <= owed[i] + 32'(read_ready_o[i]) - 32'(read_rvalid_o[i]);
  end

  always_comb begin
    is_owed = 1'b1;
    for (int unsigned i = 0; i < 3; i++) if (read_rvalid_o[i] && owed[i] == 0) is_owed = 1'b0;
  end

  // Memories with a stalled beat, and readers of such beats.
  logic waits;
  assign waits = $countones(held) <= $countones(valid_q) && (held & ~{{Clusters{1'b0}}, memory_read_valid_o}) == '0;

  // Ports at which the NIC, or the host, wrote last.
  logic [3:0] nic_last, host_last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {nic_last, host_last} <= '0;
    else {nic_last, host_last} <= {nic_last & ~host_taken | nic_taken, host_last & ~nic_taken | host_taken};
  end

  logic goes;
  assign goes = (l1_write_valid_o & l1_write_ready_i) != '0 || (memory_write_valid_o & memory_write_ready_i) != '0;

  Turns : assert property ((nic_last & nic_taken & host_port) == '0 && (host_last & host_taken & nic_port) == '0);
  OneWriter : assert property ((nic_taken & host_taken) == '0 && $onehot0(nic_taken) && $onehot0(host_taken));
  OneWrite : assert property ($onehot0(l1_write_valid_o));
  Written : assert property (write_valid_i && write_ready_o |-> goes || write_missing_o);
  NotTwice : assert property (goes |-> (write_valid_i && write_ready_o) || (host_valid_i && host_ready_o));
  Asked : assert property ((read_ready_o & ~read_valid_i) == '0);
  Waits : assert property (waits);
  Owed : assert property (is_owed);

  for (genvar m = 0; m < 3 + Clusters; m++) begin : g_memory
    OneReader : assert property ($onehot0(grant[m]) && !(held[m] && grant[m] != '0));
  end

  TwoReads : cover property ($countones(read_ready_o) > 1);
  TwoPorts : cover property (nic_taken != '0 && host_taken != '0);
  Contended : cover property ((nic_port & host_port) != '0);

endmodule

bind pspin_nhi pspin_nhi_sva #(
  .Clusters(Clusters)
) u_sva (.*);
