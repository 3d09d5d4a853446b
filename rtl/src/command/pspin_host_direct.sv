// SPDX-License-Identifier: Apache-2.0
// Host-direct commands (PsPIN III-B1): small writes to host memory with their data in the command, and small reads that
// return data to the HPU driver. The unit itself writes the status of a failed handler in the same way.
module pspin_host_direct
  import pspin_pkg::*;
#(
  parameter int unsigned Queue = 8   // queued commands: each has a credit
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // From the command path; there is always room. credit_give_o returns the credit. The data of a command of the unit
  // itself is in the status unit; status_take_o takes it.
  input  logic                    command_valid_i,
  input  command_t                command_i,
  input  logic                    is_own_i,
  output logic                    credit_give_o,
  input  logic [255:0]            status_i,
  output logic                    status_take_o,
  output logic                    status_lost_o,   // the host refused one

  // To host memory: a write of one beat; the host responds once it accepts the write.
  output logic                    host_write_valid_o,
  input  logic                    host_write_ready_i,
  output logic [63:0]             host_write_address_o,
  output logic [511:0]            host_write_data_o,
  output logic [6:0]              host_write_bytes_o,
  output logic [ContextWidth-1:0] host_write_context_o,
  output logic                    host_write_own_o,
  input  logic                    host_written_valid_i,
  input  logic                    host_written_own_i,
  input  logic                    host_written_refused_i,

  // To host memory: a read, and its beat of data.
  output logic                    host_read_valid_o,
  input  logic                    host_read_ready_i,
  output logic [63:0]             host_read_address_o,
  output logic [31:0]             host_read_size_o,
  output logic [ContextWidth-1:0] host_read_context_o,
  input  logic                    host_data_valid_i,
  output logic                    host_data_ready_o,
  input  logic [511:0]            host_data_i,
  input  logic                    host_data_refused_i,

  // To pspin_responses.
  output logic                    end_valid_o,
  input  logic                    end_ready_i,
  output command_end_t            end_o,
  output logic [511:0]            end_data_o
);

  localparam int unsigned QueueWidth = $clog2(Queue + 1);

  logic     queue_ready, queue_empty, valid, is_own, is_write, leaves;
  command_t front;

  // A command at the engine leaves in the next cycle.
  pspin_fallthrough #(
    .Width ($bits(command_t) + 1),
    .Depth (Queue),
    .Cycles(2)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .valid_i(command_valid_i),
    .ready_o(queue_ready),
    .data_i ({is_own_i, command_i}),
    .valid_o(valid),
    .ready_i(leaves),
    .data_o ({is_own, front}),
    .empty_o(queue_empty)
  );

  assign is_write             = front.kind == CommandHostDirect;
  assign host_write_valid_o   = valid && is_write;
  assign host_write_address_o = front.host;
  assign host_write_data_o    = is_own ? 512'(status_i) : 512'(front.immediate);
  assign host_write_bytes_o   = is_own ? 7'd32 : front.immediate_size;
  assign host_write_context_o = front.execution_context;
  assign host_write_own_o     = is_own;
  assign host_read_valid_o    = valid && !is_write;
  assign host_read_address_o  = front.host;
  assign host_read_size_o     = 32'(front.immediate_size);
  assign host_read_context_o  = front.execution_context;
  assign leaves               = is_write ? host_write_ready_i : host_read_ready_i;
  assign status_take_o        = valid && is_own && host_write_ready_i;

  // Outstanding commands, except for those of the unit itself. Responses to writes wait until their ends are accepted,
  // and while read data arrives.
  logic                  writes_ready, writes_valid, reads_ready, reads_valid, answer_ready, answer_valid, answer_own;
  logic                  answer_refused, answer_empty, takes_answer, takes_data;
  logic [QueueWidth-1:0] writes, reads;
  command_end_t          in, write, read;

  always_comb begin
    in      = '0;
    in.hpu  = front.hpu;
    in.slot = front.slot;
    in.host = front.host;
  end

  pspin_fifo #(
    .Width($bits(command_end_t)),
    .Depth(Queue)
  ) u_writes (
    .clk_i,
    .rst_ni,
    .valid_i(host_write_valid_o && host_write_ready_i && !is_own),
    .ready_o(writes_ready),
    .data_i (in),
    .valid_o(writes_valid),
    .ready_i(takes_answer && !answer_own),
    .data_o (write),
    .count_o(writes)
  );

  pspin_fifo #(
    .Width($bits(command_end_t)),
    .Depth(Queue)
  ) u_reads (
    .clk_i,
    .rst_ni,
    .valid_i(host_read_valid_o && host_read_ready_i),
    .ready_o(reads_ready),
    .data_i (in),
    .valid_o(reads_valid),
    .ready_i(takes_data),
    .data_o (read),
    .count_o(reads)
  );

  pspin_fallthrough #(
    .Width(2),
    .Depth(Queue)
  ) u_answers (
    .clk_i,
    .rst_ni,
    .valid_i(host_written_valid_i),
    .ready_o(answer_ready),
    .data_i ({host_written_own_i, host_written_refused_i}),
    .valid_o(answer_valid),
    .ready_i(takes_answer),
    .data_o ({answer_own, answer_refused}),
    .empty_o(answer_empty)
  );

  assign takes_answer      = answer_valid && !host_data_valid_i && (answer_own || end_ready_i);
  assign host_data_ready_o = end_ready_i;
  assign takes_data        = host_data_valid_i && host_data_ready_o;
  assign status_lost_o     = takes_answer && answer_own && answer_refused;
  assign end_valid_o       = (takes_answer && !answer_own) || takes_data;
  assign end_data_o        = host_data_valid_i ? host_data_i : '0;
  assign credit_give_o     = takes_answer || takes_data;

  always_comb begin
    end_o            = host_data_valid_i ? read : write;
    end_o.is_refused = host_data_valid_i ? host_data_refused_i : answer_refused;
  end

  // Credits prevent overflow of the queues, and the host responds only to requests.
  logic unused;
  assign unused = ^{front, queue_ready, queue_empty, writes_ready, writes_valid, reads_ready, reads_valid, answer_ready, answer_empty, writes, reads};

endmodule
