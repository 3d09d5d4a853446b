// SPDX-License-Identifier: Apache-2.0
// An HPU with the sizes of the machine. All are the same module without parameters, so that a simulator compiles one
// for all; pspin_hpu documents the ports.
module pspin_cluster_hpu
  import pspin_pkg::*;
  import pspin_cfg_pkg::*;
(
  input  logic                     clk_i,
  input  logic                     rst_ni,

  // Identity, and registers of the unit.
  input  hpu_id_t                  id_i,
  input  cfg_t                     cfg_i,

  // pspin_icache (OBI). A request is withdrawn when the core is reset; a fetch outside of the code returns an error.
  output logic                     instr_req_o,
  input  logic                     instr_gnt_i,
  output logic [31:0]              instr_addr_o,
  input  logic                     instr_rvalid_i,
  input  logic [31:0]              instr_rdata_i,
  input  logic                     instr_error_i,

  // pspin_l1 of the cluster: grants in the cycle of the request, which may be withdrawn, and responds in the next; to
  // an atomic operation one cycle later. Addresses are global, here and below.
  output logic                     l1_valid_o,
  input  logic                     l1_gnt_i,
  output word_request_t            l1_o,
  input  logic                     l1_rvalid_i,
  input  logic [31:0]              l1_rdata_i,

  // pspin_pe_port: other memories. One access is outstanding at a time.
  output logic                     pe_valid_o,
  input  logic                     pe_ready_i,
  output word_request_t            pe_o,
  input  logic                     pe_rvalid_i,
  input  logic [31:0]              pe_rdata_i,

  // pspin_csched: a task, while the HPU is idle, and a cycle later the row of its context. A task may be assigned in
  // the cycle after one with idle_o. waits_o: the HPU waits for a task, and has nothing in flight.
  input  logic                     assign_valid_i,
  input  logic [PlaceIndexWidth-1:0]    assign_place_i,
  input  task_t                    assign_task_i,
  input  range_t                   assign_packet_i,  // address and size in L1
  input  execution_context_t       context_i,
  input  range_t [Clusters-1:0]    scratchpads_i,
  output logic                     idle_o,
  output logic                     waits_o,

  // pspin_csched: finished tasks with all commands complete, in order.
  output logic                     done_valid_o,
  input  logic                     done_ready_i,
  output logic [PlaceIndexWidth-1:0]    done_place_o,
  output outcome_t                 done_outcome_o,

  // Arbiter of the cluster for commands; responses for all HPUs. orphans_o: slots of commands whose task failed, for
  // which the off-cluster DMA engine discards the data read from the host.
  output logic                     command_valid_o,
  input  logic                     command_ready_i,
  output command_t                 command_o,
  input  logic                     response_valid_i,
  input  response_t                response_i,
  output logic [ClusterCommandsInFlight-1:0]      orphans_o,

  // pspin_cluster_dma: transfers of the handler; transfer_landed_i: the oldest of this HPU has landed.
  output logic                     transfer_valid_o,
  input  logic                     transfer_ready_i,
  output logic [31:0]              transfer_from_o,
  output logic [31:0]              transfer_to_o,
  output logic [31:0]              transfer_size_o,
  input  logic                     transfer_landed_i,

  // Console and terminate register of the unit.
  output logic                     console_valid_o,
  input  logic                     console_ready_i,
  output logic [7:0]               console_char_o,
  output logic                     terminate_o
);

  pspin_hpu #(
    .Clusters    (Clusters),
    .Tasks       (ClusterTasks),
    .StackBytes  (StackBytes),
    .L1Bytes     (L1Bytes),
    .HandlerBytes(L2HandlerBytes),
    .PacketBytes (L2PacketBytes),
    .ProgramBytes(ProgramBytes),
    .Commands    (ClusterCommandsInFlight),
    .Buffered    (ClusterBufferedCompletions),
    .DirectBytes (CommandsHostDirectBytes),
    .TrapCycles  (ClusterTrapCycles)
  ) u_hpu (.*);

endmodule
