// SPDX-License-Identifier: Apache-2.0
// The port for NIC and host obeys the rules of AXI, and so do they.
bind pspin_axi_slave pspin_axi_rules #(
  .AddressWidth  (32),
  .IdWidth       (IdWidth),
  .BurstsAreLegal(1'b0)
) u_rules (
  .clk_i,
  .rst_ni,
  .aw_valid(aw_valid_i),
  .aw_ready(aw_ready_o),
  .aw_id   (aw_id_i),
  .aw_addr (aw_addr_i),
  .aw_len  (aw_len_i),
  .aw_size (aw_size_i),
  .aw_burst(aw_burst_i),
  .w_valid (w_valid_i),
  .w_ready (w_ready_o),
  .w_data  (w_data_i),
  .w_strb  (w_strb_i),
  .w_last  (w_last_i),
  .b_valid (b_valid_o),
  .b_ready (b_ready_i),
  .b_id    (b_id_o),
  .b_resp  (b_resp_o),
  .ar_valid(ar_valid_i),
  .ar_ready(ar_ready_o),
  .ar_id   (ar_id_i),
  .ar_addr (ar_addr_i),
  .ar_len  (ar_len_i),
  .ar_size (ar_size_i),
  .ar_burst(ar_burst_i),
  .r_valid (r_valid_o),
  .r_ready (r_ready_i),
  .r_id    (r_id_o),
  .r_data  (r_data_o),
  .r_resp  (r_resp_o),
  .r_last  (r_last_o)
);
