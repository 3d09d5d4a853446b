// SPDX-License-Identifier: Apache-2.0
// Parts of the execution contexts for the queue engine: existing handlers, pins, and idle thresholds. Each cluster has
// another copy with the rest (pspin_contexts).
module pspin_mpq_contexts
  import pspin_pkg::*;
#(
  parameter int unsigned Contexts = 64
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // From the registers.
  input  logic                    write_i,
  input  logic [ContextWidth-1:0] write_index_i,
  input  execution_context_t      write_context_i,

  // Context of a request, in the same cycle.
  input  logic [ContextWidth-1:0] index_i,
  output logic [2:0]              roles_o,        // by role_e
  output logic                    is_pinned_o,
  output logic [7:0]              pin_o,

  // Idle threshold, output in the next cycle.
  input  logic                    idle_read_i,
  input  logic [ContextWidth-1:0] idle_index_i,
  output logic [31:0]             idle_cycles_o
);

  localparam int unsigned IndexWidth = Contexts > 1 ? $clog2(Contexts) : 1;

  logic [2:0]          roles_q [Contexts];
  logic [7:0]          pin_q   [Contexts];
  logic [Contexts-1:0] is_pinned_q, has_row_q;
  logic                has_idle_q;
  logic [31:0]         idle_row;

  // A context that was not written since the reset has no handlers, and its messages are not given up.
  assign idle_cycles_o = has_idle_q ? idle_row : '1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) has_idle_q <= 1'b0;
    else if (idle_read_i) has_idle_q <= has_row_q[IndexWidth'(idle_index_i)];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      has_row_q <= '0;
      for (int unsigned i = 0; i < Contexts; i++) roles_q[i] <= '0;
      is_pinned_q <= '0;
    end else if (write_i) begin
      has_row_q[IndexWidth'(write_index_i)] <= 1'b1;
      for (int unsigned i = 0; i < 3; i++) begin
        roles_q[IndexWidth'(write_index_i)][i] <= write_context_i.handlers[i].address != '0;
      end
      is_pinned_q[IndexWidth'(write_index_i)] <= write_context_i.is_pinned;
    end
  end

  always_ff @(posedge clk_i) begin
    if (write_i) pin_q[IndexWidth'(write_index_i)] <= write_context_i.pin;
  end

  // The rest of a row is for the clusters; widths suit all configurations.
  logic unused;
  assign unused = ^{write_context_i, write_index_i, index_i, idle_index_i};

  assign roles_o     = roles_q[IndexWidth'(index_i)];
  assign is_pinned_o = is_pinned_q[IndexWidth'(index_i)];
  assign pin_o       = pin_q[IndexWidth'(index_i)];

  pspin_sram_2p #(
    .Rows (Contexts),
    .Width(32)
  ) u_idle_cycles (
    .clk_i,
    .we_i   (write_i),
    .wrow_i (IndexWidth'(write_index_i)),
    .wdata_i(write_context_i.idle_cycles),
    .re_i   (idle_read_i),
    .rrow_i (IndexWidth'(idle_index_i)),
    .rdata_o(idle_row)
  );

endmodule
