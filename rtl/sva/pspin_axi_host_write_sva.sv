// SPDX-License-Identifier: Apache-2.0
// The write port to host memory obeys the rules of AXI, and so does the host.
bind pspin_axi_host_write pspin_axi_rules #(
  .AddressWidth  (64),
  .IdWidth       (IdWidth),
  .AnswersAreOwed(1'b0)
) u_rules (
  .clk_i,
  .rst_ni,
  .aw_valid(aw_valid_o),
  .aw_ready(aw_ready_i),
  .aw_id   (aw_id_o),
  .aw_addr (aw_addr_o),
  .aw_len  (aw_len_o),
  .aw_size (aw_size_o),
  .aw_burst(aw_burst_o),
  .w_valid (w_valid_o),
  .w_ready (w_ready_i),
  .w_data  (w_data_o),
  .w_strb  (w_strb_o),
  .w_last  (w_last_o),
  .b_valid (b_valid_i),
  .b_ready (b_ready_o),
  .b_id    (b_id_i),
  .b_resp  (b_resp_i),
  .ar_valid(1'b0),
  .ar_ready(1'b0),
  .ar_id   ('0),
  .ar_addr ('0),
  .ar_len  ('0),
  .ar_size ('0),
  .ar_burst('0),
  .r_valid (1'b0),
  .r_ready (1'b0),
  .r_id    ('0),
  .r_data  ('0),
  .r_resp  ('0),
  .r_last  (1'b0)
);
