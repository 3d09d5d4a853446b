// SPDX-License-Identifier: Apache-2.0
// The unit with the fields of its structures as separate ports, for crates/card/pspin-rtl.
module pspin_harness
  import pspin_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         load_i,

  // Requests, and feedback.
  input  logic         her_valid_i,
  output logic         her_ready_o,
  input  logic [31:0]  her_message_i,
  input  logic [31:0]  her_flow_i,
  input  logic         her_eom_i,
  input  logic [31:0]  her_address_i,
  input  logic [15:0]  her_size_i,
  input  logic [15:0]  her_transfer_i,
  input  logic [7:0]   her_context_i,
  input  logic [31:0]  her_user_i,
  output logic         feedback_valid_o,
  input  logic         feedback_ready_i,
  output logic [31:0]  feedback_message_o,
  output logic [31:0]  feedback_address_o,
  output logic [15:0]  feedback_size_o,
  output logic [15:0]  feedback_transfer_o,
  output logic [31:0]  feedback_user_o,
  output logic [2:0]   feedback_kind_o,
  output logic         feedback_last_o,

  // Packets to write.
  input  logic         write_valid_i,
  output logic         write_ready_o,
  input  logic [31:0]  write_address_i,
  input  logic [63:0]  write_strobe_i,
  input  logic [511:0] write_data_i,

  // Packets to send.
  output logic         send_valid_o,
  input  logic         send_ready_i,
  output logic [7:0]   send_cluster_o,
  output logic [7:0]   send_hpu_o,
  output logic [31:0]  send_node_o,
  output logic [31:0]  send_flow_o,
  output logic [31:0]  send_user_o,
  output logic [511:0] send_data_o,
  output logic [6:0]   send_bytes_o,
  output logic         send_last_o,

  // Host memory.
  output logic         host_write_valid_o,
  input  logic         host_write_ready_i,
  output logic [63:0]  host_write_address_o,
  output logic [511:0] host_write_data_o,
  output logic [6:0]   host_write_bytes_o,
  output logic         host_write_first_o,
  output logic         host_write_last_o,
  output logic [1:0]   host_write_id_o,
  output logic [7:0]   host_write_context_o,
  output logic         host_write_own_o,
  input  logic         host_written_valid_i,
  input  logic [1:0]   host_written_id_i,
  input  logic         host_written_refused_i,
  output logic         host_read_valid_o,
  input  logic         host_read_ready_i,
  output logic [63:0]  host_read_address_o,
  output logic [31:0]  host_read_size_o,
  output logic [1:0]   host_read_id_o,
  output logic [7:0]   host_read_context_o,
  input  logic         host_data_valid_i,
  output logic         host_data_ready_o,
  input  logic [511:0] host_data_i,
  input  logic         host_data_last_i,
  input  logic [1:0]   host_data_id_i,
  input  logic         host_data_refused_i,

  // Registers.
  input  logic         ctrl_valid_i,
  input  logic         ctrl_we_i,
  input  logic [15:0]  ctrl_address_i,
  input  logic [31:0]  ctrl_wdata_i,
  output logic         ctrl_rvalid_o,
  output logic [31:0]  ctrl_rdata_o,
  output logic         idle_o
);

  feedback_t feedback;
  command_t  send_command;

  assign feedback_message_o  = feedback.message;
  assign feedback_address_o  = feedback.address;
  assign feedback_size_o     = feedback.size;
  assign feedback_transfer_o = feedback.transfer;
  assign feedback_user_o     = feedback.user;
  assign feedback_kind_o     = feedback.kind;
  assign feedback_last_o     = feedback.last;
  assign send_cluster_o      = send_command.hpu.cluster;
  assign send_hpu_o          = 8'(send_command.hpu.hpu);
  assign send_node_o         = send_command.node;
  assign send_flow_o         = send_command.flow;
  assign send_user_o         = send_command.user;

  // Inputs as seen by the unit: they change at the edges of load_i, so dependent logic is evaluated once per change of
  // inputs, and not at all in a cycle without. Logic that depends on ports is evaluated at each edge of the clock.
  logic her_valid_q, her_eom_q, feedback_ready_q, write_valid_q, send_ready_q, host_write_ready_q,
        host_written_valid_q, host_written_refused_q, host_read_ready_q, host_data_valid_q, host_data_last_q,
        host_data_refused_q, ctrl_valid_q, ctrl_we_q;
  logic [1:0] host_written_id_q, host_data_id_q;
  logic [7:0] her_context_q;
  logic [15:0] her_size_q, her_transfer_q, ctrl_address_q;
  logic [31:0] her_message_q, her_flow_q, her_address_q, her_user_q, write_address_q, ctrl_wdata_q;
  logic [63:0] write_strobe_q;
  logic [511:0] write_data_q, host_data_q;

  always_ff @(edge load_i) begin
    her_valid_q            <= her_valid_i;
    her_message_q          <= her_message_i;
    her_flow_q             <= her_flow_i;
    her_eom_q              <= her_eom_i;
    her_address_q          <= her_address_i;
    her_size_q             <= her_size_i;
    her_transfer_q         <= her_transfer_i;
    her_context_q          <= her_context_i;
    her_user_q             <= her_user_i;
    feedback_ready_q       <= feedback_ready_i;
    write_valid_q          <= write_valid_i;
    write_address_q        <= write_address_i;
    write_strobe_q         <= write_strobe_i;
    write_data_q           <= write_data_i;
    send_ready_q           <= send_ready_i;
    host_write_ready_q     <= host_write_ready_i;
    host_written_valid_q   <= host_written_valid_i;
    host_written_id_q      <= host_written_id_i;
    host_written_refused_q <= host_written_refused_i;
    host_read_ready_q      <= host_read_ready_i;
    host_data_valid_q      <= host_data_valid_i;
    host_data_q            <= host_data_i;
    host_data_last_q       <= host_data_last_i;
    host_data_id_q         <= host_data_id_i;
    host_data_refused_q    <= host_data_refused_i;
    ctrl_valid_q           <= ctrl_valid_i;
    ctrl_we_q              <= ctrl_we_i;
    ctrl_address_q         <= ctrl_address_i;
    ctrl_wdata_q           <= ctrl_wdata_i;
  end

  pspin_unit u_unit (
    .clk_i,
    .rst_ni,
    .host_timeout_o       (),
    .host_strays_i        ('0),
    .her_valid_i          (her_valid_q),
    .her_ready_o,
    .her_i                ('{
        message:           her_message_q,
        flow:              her_flow_q,
        eom:               her_eom_q,
        address:           her_address_q,
        size:              her_size_q,
        transfer:          her_transfer_q,
        execution_context: her_context_q,
        user:              her_user_q}),
    .feedback_valid_o,
    .feedback_ready_i     (feedback_ready_q),
    .feedback_o           (feedback),
    .write_valid_i        (write_valid_q),
    .write_ready_o,
    .write_i              ('{address: write_address_q, strobe: write_strobe_q, wdata: write_data_q}),
    .write_missing_o      (),
    .read_valid_i         (1'b0),
    .read_ready_o         (),
    .read_address_i       ('0),
    .read_valid_o         (),
    .read_data_o          (),
    .read_missing_o       (),
    .send_valid_o,
    .send_ready_i         (send_ready_q),
    .send_command_o       (send_command),
    .send_data_o,
    .send_bytes_o,
    .send_first_o         (),
    .send_last_o,
    .host_write_valid_o,
    .host_write_ready_i   (host_write_ready_q),
    .host_write_address_o,
    .host_write_size_o    (),
    .host_write_data_o,
    .host_write_bytes_o,
    .host_write_first_o,
    .host_write_last_o,
    .host_write_id_o,
    .host_write_context_o,
    .host_write_own_o,
    .host_written_valid_i (host_written_valid_q),
    .host_written_id_i    (host_written_id_q),
    .host_written_refused_i(host_written_refused_q),
    .host_read_valid_o,
    .host_read_ready_i    (host_read_ready_q),
    .host_read_address_o,
    .host_read_size_o,
    .host_read_id_o,
    .host_read_context_o,
    .host_data_valid_i    (host_data_valid_q),
    .host_data_ready_o,
    .host_data_i          (host_data_q),
    .host_data_last_i     (host_data_last_q),
    .host_data_id_i       (host_data_id_q),
    .host_data_refused_i  (host_data_refused_q),
    .ctrl_valid_i         (ctrl_valid_q),
    .ctrl_we_i            (ctrl_we_q),
    .ctrl_address_i       (ctrl_address_q),
    .ctrl_wdata_i         (ctrl_wdata_q),
    .ctrl_rvalid_o,
    .ctrl_rdata_o,
    .irq_o                (),
    .idle_o
  );

  logic unused;
  assign unused = ^{feedback, send_command};

endmodule
