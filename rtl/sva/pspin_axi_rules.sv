// SPDX-License-Identifier: Apache-2.0
// Rules of an AXI4 port of 512 bits (AMBA AXI, A3): offers are stable until accepted, bursts do not cross 4 KiB, the
// last beat of each is marked, and every response has a request.
module pspin_axi_rules #(
  parameter int unsigned AddressWidth   = 32,
  parameter int unsigned IdWidth        = 4,
  parameter bit          BurstsAreLegal = 1'b1,  // the unit makes the bursts; it refuses illegal ones of others
  parameter bit          AnswersAreOwed = 1'b1   // the unit answers; it drops answers of others that are not owed
) (
  input logic                    clk_i,
  input logic                    rst_ni,

  input logic                    aw_valid,
  input logic                    aw_ready,
  input logic [IdWidth-1:0]      aw_id,
  input logic [AddressWidth-1:0] aw_addr,
  input logic [7:0]              aw_len,
  input logic [2:0]              aw_size,
  input logic [1:0]              aw_burst,
  input logic                    w_valid,
  input logic                    w_ready,
  input logic [511:0]            w_data,
  input logic [63:0]             w_strb,
  input logic                    w_last,
  input logic                    b_valid,
  input logic                    b_ready,
  input logic [IdWidth-1:0]      b_id,
  input logic [1:0]              b_resp,

  input logic                    ar_valid,
  input logic                    ar_ready,
  input logic [IdWidth-1:0]      ar_id,
  input logic [AddressWidth-1:0] ar_addr,
  input logic [7:0]              ar_len,
  input logic [2:0]              ar_size,
  input logic [1:0]              ar_burst,
  input logic                    r_valid,
  input logic                    r_ready,
  input logic [IdWidth-1:0]      r_id,
  input logic [511:0]            r_data,
  input logic [1:0]              r_resp,
  input logic                    r_last
);

  default clocking @(posedge clk_i);
  endclocking
  default disable iff (!rst_ni);

  assert property (aw_valid && !aw_ready |=> aw_valid && $stable({aw_id, aw_addr, aw_len, aw_size, aw_burst}));
  assert property (w_valid && !w_ready |=> w_valid && $stable({w_data, w_strb, w_last}));
  assert property (b_valid && !b_ready |=> b_valid && $stable({b_id, b_resp}));
  assert property (ar_valid && !ar_ready |=> ar_valid && $stable({ar_id, ar_addr, ar_len, ar_size, ar_burst}));
  assert property (r_valid && !r_ready |=> r_valid && $stable({r_id, r_data, r_resp, r_last}));

  // True if a burst stays within its 4 KiB.
  function automatic logic stays(logic [AddressWidth-1:0] address, logic [7:0] len, logic [2:0] size);
    return (32'(address[11:0]) >> size) + 32'(len) < 32'd4096 >> size;
  endfunction

  assert property (BurstsAreLegal && aw_valid && aw_burst == 2'b01 |-> stays(aw_addr, aw_len, aw_size));
  assert property (BurstsAreLegal && ar_valid && ar_burst == 2'b01 |-> stays(ar_addr, ar_len, ar_size));

  // Checks beats of writes and reads against the lengths of their bursts (data may precede its address), and responses
  // against bursts.
  localparam int unsigned Ids = 2 ** IdWidth;

  logic [IdWidth+7:0] writes[$];      // identifier and length
  logic [7:0]         reads[Ids][$];
  logic               lasts[$];       // beats that precede their address
  int unsigned        owed[Ids];      // outstanding responses
  int unsigned        w_index, r_index[Ids];

  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      writes.delete();
      lasts.delete();
      w_index = 0;
      for (int unsigned i = 0; i < Ids; i++) begin
        reads[i].delete();
        owed[i]    = 0;
        r_index[i] = 0;
      end
    end else begin
      if (b_valid && b_ready) begin
        a_owed : assert (owed[b_id] != 0 || !AnswersAreOwed);
        if (owed[b_id] != 0) owed[b_id]--;
      end
      if (aw_valid && aw_ready) writes.push_back({aw_id, aw_len});
      if (w_valid && w_ready) lasts.push_back(w_last);
      while (lasts.size() != 0 && writes.size() != 0) begin
        a_last : assert (lasts[0] == (w_index == 32'(writes[0][7:0])));
        w_index = lasts[0] ? 0 : w_index + 1;
        if (lasts[0]) begin
          owed[writes[0][8+:IdWidth]]++;
          void'(writes.pop_front());
        end
        void'(lasts.pop_front());
      end
      if (r_valid && r_ready) begin
        a_asked : assert (reads[r_id].size() != 0 || !AnswersAreOwed);
        if (reads[r_id].size() != 0) begin
          a_read_last : assert (r_last == (r_index[r_id] == 32'(reads[r_id][0])));
          if (r_last) void'(reads[r_id].pop_front());
          r_index[r_id] = r_last ? 0 : r_index[r_id] + 1;
        end
      end
      if (ar_valid && ar_ready) reads[ar_id].push_back(ar_len);
    end
  end

endmodule
