// SPDX-License-Identifier: Apache-2.0
// The off-cluster DMA engine (PsPIN III-C, Flow 4): copies of L1 and L2 to host memory, and of host memory to L1 and
// L2. The two directions are independent; each executes its commands in order.
module pspin_off_cluster_dma
  import pspin_pkg::*;
#(
  parameter int unsigned Queue       = 8,   // queued commands: each has a credit
  parameter int unsigned ReadCycles  = 4,
  parameter int unsigned StartCycles = 0,   // cycles that a copy to the host waits
  parameter int unsigned L1Gap       = 1,   // cycles after a copy from L1 to the host
  parameter int unsigned L2Gap       = 0,   // and after one from L2
  parameter int unsigned Buffer      = 16   // buffered beats from the host
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // From the command path; there is always room. credits_give_o returns one for each direction.
  input  logic                    command_valid_i,
  input  command_t                command_i,
  output logic [1:0]              credits_give_o,

  // From the HPU drivers: the task of the command at the head of the reads failed, so its data is discarded.
  output hpu_id_t                 reader_o,
  output logic [SlotWidth-1:0]    reader_slot_o,
  input  logic                    reader_is_orphan_i,

  // To pspin_nhi.
  output logic                    read_valid_o,
  input  logic                    read_ready_i,
  output logic [31:0]             read_address_o,
  input  logic                    read_rvalid_i,
  input  logic [511:0]            read_data_i,
  output logic                    write_valid_o,
  input  logic                    write_ready_i,
  output beat_request_t           write_o,

  // To host memory: beats of a write; the host responds once it accepts the write.
  output logic                    host_write_valid_o,
  input  logic                    host_write_ready_i,
  output logic [63:0]             host_write_address_o,
  output logic [31:0]             host_write_size_o,
  output logic [511:0]            host_write_data_o,
  output logic [6:0]              host_write_bytes_o,
  output logic                    host_write_first_o,
  output logic                    host_write_last_o,
  output logic [ContextWidth-1:0] host_write_context_o,
  input  logic                    host_written_valid_i,
  input  logic                    host_written_refused_i,

  // To host memory: reads, and their data, in order.
  output logic                    host_read_valid_o,
  input  logic                    host_read_ready_i,
  output logic [63:0]             host_read_address_o,
  output logic [31:0]             host_read_size_o,
  output logic [ContextWidth-1:0] host_read_context_o,
  input  logic                    host_data_valid_i,
  output logic                    host_data_ready_o,
  input  logic [511:0]            host_data_i,
  input  logic                    host_data_last_i,
  input  logic                    host_data_refused_i,

  // To pspin_responses: [0] writes, [1] reads.
  output logic [1:0]              end_valid_o,
  input  logic [1:0]              end_ready_i,
  output command_end_t [1:0]      end_o,

  // To the event queue of the registers: completion of a handler's command with its event number. An event and the end
  // of its command transfer together.
  output logic [1:0]              event_valid_o,
  input  logic [1:0]              event_ready_i,
  output logic [1:0][31:0]        event_user_o
);

  localparam int unsigned Depth      = 8;  // beats in flight to the host
  localparam int unsigned QueueWidth = $clog2(Queue + 1);
  localparam int unsigned DepthWidth = $clog2(Depth + 1);

  /////////////
  // To host //
  /////////////

  logic                  to_ready, to_valid, to_empty, range_ready, begins, sending_ready, sending_valid, written_ready, written_valid;
  logic                  data_valid, data_ready, data_ends, arrives, engine_empty, leaves_last, answer_ready, answer_valid;
  logic                  answer_refused, answer_empty, write_ends;
  logic [QueueWidth-1:0] written_count;
  logic [DepthWidth-1:0] sending_count;
  command_t              to_front, sending, written;

  pspin_fallthrough #(
    .Width ($bits(command_t)),
    .Depth (Queue),
    .Cycles(StartCycles + 1)
  ) u_to_host (
    .clk_i,
    .rst_ni,
    .valid_i(command_valid_i && command_i.kind == CommandToHost),
    .ready_o(to_ready),
    .data_i (command_i),
    .valid_o(to_valid),
    .ready_i(range_ready),
    .data_o (to_front),
    .empty_o(to_empty)
  );

  pspin_read_engine #(
    .ReadCycles(ReadCycles),
    .L1Gap     (L1Gap),
    .L2Gap     (L2Gap),
    .L1Turn    (0),
    .L2Turn    (0),
    .Depth     (Depth)
  ) u_read (
    .clk_i,
    .rst_ni,
    .range_valid_i(to_valid),
    .range_ready_o(range_ready),
    .range_i      (to_front.data),
    .begins_o     (begins),
    .read_valid_o,
    .read_ready_i,
    .read_address_o,
    .read_rvalid_i,
    .read_data_i,
    .arrives_o    (arrives),
    .data_valid_o (data_valid),
    .data_ready_i (data_ready),
    .data_o       (host_write_data_o),
    .bytes_o      (host_write_bytes_o),
    .first_o      (host_write_first_o),
    .last_o       (host_write_last_o),
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
    .data_i (to_front),
    .valid_o(sending_valid),
    .ready_i(leaves_last),
    .data_o (sending),
    .count_o(sending_count)
  );

  assign host_write_valid_o   = data_valid;
  assign data_ready           = host_write_ready_i;
  assign host_write_address_o = sending.host;
  assign host_write_size_o    = sending.data.size;
  assign host_write_context_o = sending.execution_context;
  assign leaves_last          = data_valid && data_ready && host_write_last_o;

  // Writes that the host has not accepted yet, and those that it has.
  pspin_fifo #(
    .Width($bits(command_t)),
    .Depth(Queue)
  ) u_written (
    .clk_i,
    .rst_ni,
    .valid_i(leaves_last),
    .ready_o(written_ready),
    .data_i (sending),
    .valid_o(written_valid),
    .ready_i(write_ends),
    .data_o (written),
    .count_o(written_count)
  );

  pspin_fallthrough #(
    .Width(1),
    .Depth(Queue)
  ) u_answers (
    .clk_i,
    .rst_ni,
    .valid_i(host_written_valid_i),
    .ready_o(answer_ready),
    .data_i (host_written_refused_i),
    .valid_o(answer_valid),
    .ready_i(write_ends),
    .data_o (answer_refused),
    .empty_o(answer_empty)
  );

  // The end of a command and its event transfer together.
  logic write_event;
  assign write_event      = written.has_event && !answer_refused;
  assign write_ends       = answer_valid && end_ready_i[0] && (!write_event || event_ready_i[0]);
  assign end_valid_o[0]   = write_ends;
  assign end_o[0]         = '{hpu: written.hpu, slot: written.slot, is_refused: answer_refused, host: written.host};
  assign event_valid_o[0] = write_ends && write_event;
  assign event_user_o[0]  = written.user;

  ///////////////
  // From host //
  ///////////////

  logic                  from_ready, from_empty, asks, reading_ready, reading_valid, read_ends, written_all, read_refused;
  logic                  writer_empty, end_ready, read_valid;
  logic [QueueWidth-1:0] reading_count;
  command_t              from_front, reading;

  // A command waits here for its translation, for as long as a read of the unit's own memory takes.
  pspin_fallthrough #(
    .Width ($bits(command_t)),
    .Depth (Queue),
    .Cycles(ReadCycles + 1)
  ) u_from_host (
    .clk_i,
    .rst_ni,
    .valid_i(command_valid_i && command_i.kind == CommandFromHost),
    .ready_o(from_ready),
    .data_i (command_i),
    .valid_o(host_read_valid_o),
    .ready_i(host_read_ready_i),
    .data_o (from_front),
    .empty_o(from_empty)
  );

  assign host_read_address_o = from_front.host;
  assign host_read_size_o    = from_front.data.size;
  assign host_read_context_o = from_front.execution_context;
  assign asks                = host_read_valid_o && host_read_ready_i;

  pspin_fifo #(
    .Width($bits(command_t)),
    .Depth(Queue)
  ) u_reading (
    .clk_i,
    .rst_ni,
    .valid_i(asks),
    .ready_o(reading_ready),
    .data_i (from_front),
    .valid_o(reading_valid),
    .ready_i(read_ends),
    .data_o (reading),
    .count_o(reading_count)
  );

  pspin_write_engine #(
    .Depth(Buffer)
  ) u_write (
    .clk_i,
    .rst_ni,
    .range_valid_i(reading_valid),
    .range_i      (reading.data),
    .discard_i    (reader_is_orphan_i),
    .data_valid_i (host_data_valid_i),
    .data_ready_o (host_data_ready_o),
    .data_i       (host_data_i),
    .last_i       (host_data_last_i),
    .refused_i    (host_data_refused_i),
    .write_valid_o,
    .write_ready_i,
    .write_o,
    .end_valid_o  (written_all),
    .end_ready_i  (end_ready),
    .end_refused_o(read_refused),
    .empty_o      (writer_empty)
  );

  assign reader_o      = reading.hpu;
  assign reader_slot_o = reading.slot;
  assign read_ends     = written_all && end_ready;

  // The handler is notified in the cycle after the last beat.
  typedef struct packed {
    command_end_t ends;
    logic         has_event;
    logic [31:0]  user;
  } read_end_t;

  read_end_t read_end;
  logic      read_told;

  pspin_stage #(
    .Width($bits(read_end_t))
  ) u_read_end (
    .clk_i,
    .rst_ni,
    .valid_i(written_all),
    .ready_o(end_ready),
    .data_i ({reading.hpu, reading.slot, read_refused, reading.host, reading.has_event && !read_refused, reading.user}),
    .valid_o(read_valid),
    .ready_i(read_told),
    .data_o (read_end)
  );

  assign read_told        = end_ready_i[1] && (!read_end.has_event || event_ready_i[1]);
  assign end_valid_o[1]   = read_valid && read_told;
  assign end_o[1]         = read_end.ends;
  assign event_valid_o[1] = read_valid && read_told && read_end.has_event;
  assign event_user_o[1]  = read_end.user;

  assign credits_give_o = {read_ends, write_ends};

  // Credits prevent overflow of the queues; sent data needs little of its command.
  logic unused;
  assign unused = ^{written, reading, to_ready, sending_ready, sending_valid, written_ready, written_valid, data_ends, arrives, engine_empty, to_empty,
                    sending_count, written_count, answer_ready, answer_empty, from_ready, from_empty, reading_ready,
                    reading_count, writer_empty};

endmodule
