// SPDX-License-Identifier: Apache-2.0
// Idle time-out of messages (PsPIN III-B3): gives up a message without requests for the number of cycles set by its
// execution context. Each cycle checks the message queue that may be idle for longest, according to a pseudo-LRU tree.
//
// The tree selects a queue in cycle c; c + 1 reads the time of its latest request and its context, c + 2 the threshold
// of the context, and c + 3 gives up the queue. A request that arrives meanwhile saves its message.
module pspin_mpq_idle
  import pspin_pkg::*;
#(
  parameter int unsigned Queues    = 8,   // a power of two
  parameter int unsigned TimeWidth = 40,  // width of times, which wrap: wider than thresholds of contexts
  localparam int unsigned QueueWidth = $clog2(Queues)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // From the queue engine: a request was accepted, with this context.
  input  logic                    touch_i,
  input  logic                    touch_new_i,
  input  logic [QueueWidth-1:0]   touched_i,
  input  logic [ContextWidth-1:0] touch_context_i,
  input  logic [Queues-1:0]       active_i,

  // From the unit: all messages are given up, regardless of their age.
  input  logic                    all_i,

  // Table of contexts, which responds in the next cycle.
  output logic                    read_o,
  output logic [ContextWidth-1:0] read_context_o,
  input  logic [31:0]             idle_cycles_i,

  // To the queue engine: the message of this queue is given up. The engine may ignore it; the queue is then checked
  // again later.
  output logic                    idle_o,
  output logic [QueueWidth-1:0]   idle_queue_o,
  output logic [ContextWidth-1:0] idle_context_o
);

  logic                    victim_valid;
  logic [QueueWidth-1:0]   victim;
  logic [TimeWidth-1:0]    now_q, touched, age_q;
  logic [ContextWidth-1:0] first_context;
  logic                    named_q, read_q, due_q;     // in c + 1, c + 2, c + 3
  logic [QueueWidth-1:0]   q_named_q, q_read_q, q_due_q;

  pspin_mpq_lru #(
    .Queues(Queues)
  ) u_lru (
    .clk_i,
    .rst_ni,
    .touch_i,
    .touched_i,
    .active_i,
    .compare_i     (1'b1),
    .victim_valid_o(victim_valid),
    .victim_o      (victim)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      now_q   <= '0;
      named_q <= 1'b0;
      read_q  <= 1'b0;
      due_q   <= 1'b0;
    end else begin
      now_q   <= now_q + 1'b1;
      named_q <= victim_valid && !(touch_i && touched_i == victim);
      read_q  <= named_q && !(touch_i && touched_i == q_named_q);
      due_q   <= read_q && !(touch_i && touched_i == q_read_q);
    end
  end

  always_ff @(posedge clk_i) begin
    q_named_q      <= victim;
    q_read_q       <= q_named_q;
    q_due_q        <= q_read_q;
    age_q          <= now_q - touched + 1'b1;
    idle_context_o <= first_context;
  end

  pspin_sram_2p #(
    .Rows (Queues),
    .Width(TimeWidth)
  ) u_touched (
    .clk_i,
    .we_i   (touch_i),
    .wrow_i (touched_i),
    .wdata_i(now_q),
    .re_i   (named_q),
    .rrow_i (q_named_q),
    .rdata_o(touched)
  );

  pspin_sram_2p #(
    .Rows (Queues),
    .Width(ContextWidth)
  ) u_first_context (
    .clk_i,
    .we_i   (touch_new_i),
    .wrow_i (touched_i),
    .wdata_i(touch_context_i),
    .re_i   (named_q),
    .rrow_i (q_named_q),
    .rdata_o(first_context)
  );

  assign read_o         = read_q;
  assign read_context_o = first_context;
  assign idle_o         = due_q && (all_i || age_q >= TimeWidth'(idle_cycles_i));
  assign idle_queue_o   = q_due_q;

endmodule
