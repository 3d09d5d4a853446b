// SPDX-License-Identifier: Apache-2.0
// Events of a cluster's scheduler, for reports and for comparison with the model: bound, simulation only. Event numbers
// are those of crates/card/pspin-rtl/src/events.rs.
module pspin_observe_csched
  import pspin_pkg::*;
(
  input logic                    clk_i,
  input logic                    rst_ni,
  input logic [ClusterWidth-1:0] cluster_i,
  input logic                    send_valid_i,
  input logic [7:0]              send_place_i,
  input task_t                   send_i,
  input logic                    landed_valid_i,
  input logic [7:0]              landed_place_i
);

  import "DPI-C" function void pspin_event(
    input int kind, input int unit, input int a, input int b, input int c, input int d, input int e);

  localparam int TaskSent = 16, DmaDone = 17;

  always_ff @(posedge clk_i) begin
    if (rst_ni && landed_valid_i) pspin_event(DmaDone, 32'(cluster_i), 32'(landed_place_i), 0, 0, 0, 0);
    if (rst_ni && send_valid_i) begin
      pspin_event(TaskSent, 32'(cluster_i), 32'(send_place_i), 32'(send_i.role), 32'(send_i.feeds_back), send_i.her.user,
                  32'(send_i.mpq));
    end
  end

endmodule

bind pspin_csched pspin_observe_csched u_observe (
  .clk_i,
  .rst_ni,
  .cluster_i,
  .send_valid_i,
  .send_place_i  (8'(send_place_o)),
  .send_i,
  .landed_valid_i,
  .landed_place_i(8'(landed_place_i))
);
