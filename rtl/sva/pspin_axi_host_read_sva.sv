// SPDX-License-Identifier: Apache-2.0
// The read port to host memory obeys the rules of AXI, and so does the host.
bind pspin_axi_host_read pspin_axi_rules #(
  .AddressWidth  (64),
  .IdWidth       (IdWidth),
  .AnswersAreOwed(1'b0)
) u_rules (
  .clk_i,
  .rst_ni,
  .aw_valid(1'b0),
  .aw_ready(1'b0),
  .aw_id   ('0),
  .aw_addr ('0),
  .aw_len  ('0),
  .aw_size ('0),
  .aw_burst('0),
  .w_valid (1'b0),
  .w_ready (1'b0),
  .w_data  ('0),
  .w_strb  ('0),
  .w_last  (1'b0),
  .b_valid (1'b0),
  .b_ready (1'b0),
  .b_id    ('0),
  .b_resp  ('0),
  .ar_valid(ar_valid_o),
  .ar_ready(ar_ready_i),
  .ar_id   (ar_id_o),
  .ar_addr (ar_addr_o),
  .ar_len  (ar_len_o),
  .ar_size (ar_size_o),
  .ar_burst(ar_burst_o),
  .r_valid (r_valid_i),
  .r_ready (r_ready_o),
  .r_id    (r_id_i),
  .r_data  (r_data_i),
  .r_resp  (r_resp_i),
  .r_last  (r_last_i)
);
