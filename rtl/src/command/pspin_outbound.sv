// SPDX-License-Identifier: Apache-2.0
// Commands that send packets (PsPIN III-C, Flow 3): reads their data from L1 or L2 and passes it to the outbound engine
// of the NIC, packet by packet. A command ends once all of its data is read.
module pspin_outbound
  import pspin_pkg::*;
#(
  parameter int unsigned Queue      = 32,
  parameter int unsigned ReadCycles = 4,
  parameter int unsigned L1Gap      = 1,  // cycles after a packet in L1 if the next one is in another memory
  parameter int unsigned L2Gap      = 0   // and after one in L2
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  // From the command path; there is always room, because each command has a credit. credit_give_o returns it.
  input  logic         command_valid_i,
  input  command_t     command_i,
  output logic         credit_give_o,

  // To pspin_nhi.
  output logic         read_valid_o,
  input  logic         read_ready_i,
  output logic [31:0]  read_address_o,
  input  logic         read_rvalid_i,
  input  logic [511:0] read_data_i,

  // To the NIC: beats of a packet, each with the command.
  output logic         send_valid_o,
  input  logic         send_ready_i,
  output command_t     send_command_o,
  output logic [511:0] send_data_o,
  output logic [6:0]   send_bytes_o,
  output logic         send_first_o,
  output logic         send_last_o,

  // To pspin_responses.
  output logic         end_valid_o,
  input  logic         end_ready_i,
  output command_end_t end_o
);

  localparam int unsigned Depth      = 8;  // packets being read or sent: each has a beat in the engine
  localparam int unsigned QueueWidth = $clog2(Queue + 1);
  localparam int unsigned DepthWidth = $clog2(Depth + 1);

  logic                  queue_ready, queue_valid, range_ready, begins, sending_ready, sending_valid, leaves;
  logic                  data_valid, data_ends, is_read, engine_empty;
  logic [QueueWidth-1:0] queued;
  logic [DepthWidth-1:0] sending;
  command_t              front;

  pspin_fifo #(
    .Width($bits(command_t)),
    .Depth(Queue)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .valid_i(command_valid_i),
    .ready_o(queue_ready),
    .data_i (command_i),
    .valid_o(queue_valid),
    .ready_i(range_ready),
    .data_o (front),
    .count_o(queued)
  );

  pspin_read_engine #(
    .ReadCycles(ReadCycles),
    .L1Turn    (L1Gap),
    .L2Turn    (L2Gap),
    .Depth     (Depth)
  ) u_read (
    .clk_i,
    .rst_ni,
    .range_valid_i(queue_valid),
    .range_ready_o(range_ready),
    .range_i      (front.data),
    .begins_o     (begins),
    .read_valid_o,
    .read_ready_i,
    .read_address_o,
    .read_rvalid_i,
    .read_data_i,
    .arrives_o    (credit_give_o),
    .data_valid_o (data_valid),
    .data_ready_i (leaves),
    .data_o       (send_data_o),
    .bytes_o      (send_bytes_o),
    .first_o      (send_first_o),
    .last_o       (send_last_o),
    .ends_o       (data_ends),
    .empty_o      (engine_empty)
  );

  pspin_fifo #(
    .Width($bits(command_t)),
    .Depth(Depth)
  ) u_sending (
    .clk_i,
    .rst_ni,
    .valid_i(begins),
    .ready_o(sending_ready),
    .data_i (front),
    .valid_o(sending_valid),
    .ready_i(leaves && send_last_o),
    .data_o (send_command_o),
    .count_o(sending)
  );

  // The beat that completes the read of a packet leaves together with the end of its command.
  assign is_read      = data_valid && data_ends;
  assign send_valid_o = data_valid && (!data_ends || end_ready_i);
  assign leaves       = send_valid_o && send_ready_i;
  assign end_valid_o  = is_read && send_ready_i;

  always_comb begin
    end_o      = '0;
    end_o.hpu  = send_command_o.hpu;
    end_o.slot = send_command_o.slot;
  end

  // Credits prevent overflow of the queues.
  logic unused;
  assign unused = ^{queue_ready, queued, sending_ready, sending_valid, sending, engine_empty};

endmodule
