// SPDX-License-Identifier: Apache-2.0
// Writes of the unit to host memory as AXI4 bursts (PsPIN III-C), none crossing a 4 KiB boundary. Bytes are aligned
// within a beat by their host address. A write completes with the response to its last burst.
//
// Without a response for timeout_i cycles, all writes of an identifier end as refused. Until the host has given all
// responses that it then owes, further writes of this identifier are refused at once. Responses that no write waits for
// are dropped.
module pspin_axi_host_write
  import pspin_pkg::*;
#(
  parameter int unsigned Ids       = 3,  // identifiers of the unit: responses to those of each are in order
  parameter int unsigned Bursts    = 8,  // outstanding bursts of each
  parameter int unsigned IdWidth   = 3,
  parameter int unsigned UserWidth = 1   // sideband bits of the address
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic [31:0]          timeout_i,  // 0: never
  output logic                 stray_o,    // a response is dropped

  // pspin_unit: beats of a write, from its first byte on. The other signals are stable until the last beat is accepted.
  input  logic                 host_write_valid_i,
  output logic                 host_write_ready_o,
  input  logic [63:0]          host_write_address_i,
  input  logic [31:0]          host_write_size_i,
  input  logic [1:0]           host_write_id_i,
  input  logic [UserWidth-1:0] host_write_user_i,
  input  logic [511:0]         host_write_data_i,
  input  logic                 host_write_last_i,

  // pspin_unit: the host accepted or refused a write.
  output logic                 host_written_valid_o,
  output logic [1:0]           host_written_id_o,
  output logic                 host_written_refused_o,

  // The host.
  output logic                 aw_valid_o,
  input  logic                 aw_ready_i,
  output logic [IdWidth-1:0]   aw_id_o,
  output logic [UserWidth-1:0] aw_user_o,
  output logic [63:0]          aw_addr_o,
  output logic [7:0]           aw_len_o,
  output logic [2:0]           aw_size_o,
  output logic [1:0]           aw_burst_o,

  output logic                 w_valid_o,
  input  logic                 w_ready_i,
  output logic [511:0]         w_data_o,
  output logic [BeatBytes-1:0] w_strb_o,
  output logic                 w_last_o,

  input  logic                 b_valid_i,
  output logic                 b_ready_o,
  input  logic [IdWidth-1:0]   b_id_i,
  input  logic [1:0]           b_resp_i
);

  localparam int unsigned LenWidth    = $clog2(4096 / BeatBytes);
  localparam int unsigned CountWidth  = 27;
  localparam int unsigned BurstsWidth = $clog2(Bursts + 1);

  typedef logic [CountWidth-1:0] count_t;
  typedef logic [LenWidth-1:0]   len_t;

  // ---- Words of host memory: each has the shifted bytes of a beat, and the leftover bytes of the beat before. The
  // last word may have only the latter; then the last beat stays for it.
  logic [5:0]           offset;
  logic [57:0]          word;
  count_t               index_q, left;
  logic                 in_burst_q, begins, ends, can_go, goes, is_last, is_first;
  len_t                 length_q, length, to_page_end;
  logic [511:0]         rotated, rest_q, data;
  logic [BeatBytes-1:0] strobe;
  logic [5:0]           last_byte;
  logic                 aw_ready, w_ready;
  logic [Ids-1:0]       has_room;

  assign offset      = host_write_address_i[5:0];
  assign left        = count_t'((33'(host_write_size_i) + 33'(offset) - 33'(host_write_size_i != '0)) >> 6) - index_q;
  assign is_last     = left == '0;
  assign word        = host_write_address_i[63:6] + 58'(index_q);
  assign to_page_end = ~word[LenWidth-1:0];
  assign begins      = !in_burst_q;
  assign length      = !begins ? length_q : left < count_t'(to_page_end) ? len_t'(left) : to_page_end;
  assign ends        = length == '0;

  // Time-outs: identifiers that expire, and end their writes; the write that is discarded, and the beats that its burst
  // still owes to the host.
  logic [Ids-1:0]         is_due, expires, expiring_q, is_dead, is_end, is_owed, answers;
  logic [BurstsWidth-1:0] owed [Ids], late_q [Ids];
  logic                   discards_q, discards, discarded, discarded_q, fills, tells;
  logic [1:0]             current_q, discarded_id_q, told_id;
  logic [LenWidth:0]      fill_q;

  assign is_first           = index_q == '0 && !in_burst_q;
  assign can_go             = w_ready && (!begins || (aw_ready && has_room[host_write_id_i])) && fill_q == '0 && !discards
                            && !expires[host_write_id_i];
  assign goes               = host_write_valid_i && can_go;
  assign discards           = discards_q || (is_first && is_dead[host_write_id_i]);
  assign discarded          = host_write_valid_i && discards && host_write_last_i && expiring_q == '0;
  assign host_write_ready_o = discards ? expiring_q == '0 : can_go && (is_last || !host_write_last_i);
  assign fills              = fill_q != '0 && w_ready;

  assign last_byte = offset + host_write_size_i[5:0] - 1'b1;
  assign strobe    = host_write_size_i == '0 ? '0
                   : ({BeatBytes{1'b1}} << (index_q == '0 ? offset : 6'd0)) & ({BeatBytes{1'b1}} >> (is_last ? ~last_byte : 6'd0));

  always_comb begin
    rotated = host_write_data_i;
    for (int unsigned i = 0; i < 6; i++) begin
      if (offset[i]) rotated = rotated << (8 << i) | rotated >> (512 - (8 << i));
    end
    for (int unsigned i = 0; i < BeatBytes; i++) data[i*8+:8] = 6'(i) < offset ? rest_q[i*8+:8] : rotated[i*8+:8];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      index_q    <= '0;
      in_burst_q <= 1'b0;
      discards_q <= 1'b0;
      fill_q     <= '0;
    end else begin
      if (fills) fill_q <= fill_q - 1'b1;
      if (goes) begin
        index_q    <= is_last ? '0 : index_q + 1'b1;
        in_burst_q <= !ends;
      end
      if (discarded) begin
        index_q    <= '0;
        discards_q <= 1'b0;
      end
      // The rest of the write is discarded; its burst ends without bytes.
      if (!is_first && expires[current_q]) begin
        discards_q <= 1'b1;
        in_burst_q <= 1'b0;
        if (in_burst_q) fill_q <= (LenWidth + 1)'(length_q) + 1'b1;
      end else if (is_first && host_write_valid_i && expires[host_write_id_i]) begin
        discards_q <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (goes) begin
      length_q  <= length - 1'b1;
      rest_q    <= rotated;
      current_q <= host_write_id_i;
    end
  end

  // ---- The host.
  logic [1:0] aw_count, w_count;

  pspin_fifo #(
    .Width(2 + UserWidth + 58 + LenWidth),
    .Depth(2)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .valid_i(goes && begins),
    .ready_o(aw_ready),
    .data_i ({host_write_id_i, host_write_user_i, word, length}),
    .valid_o(aw_valid_o),
    .ready_i(aw_ready_i),
    .data_o ({aw_id_o[1:0], aw_user_o, aw_addr_o[63:6], aw_len_o[LenWidth-1:0]}),
    .count_o(aw_count)
  );

  assign aw_id_o[IdWidth-1:2]  = '0;
  assign aw_addr_o[5:0]        = '0;
  assign aw_len_o[7:LenWidth]  = '0;
  assign aw_size_o             = 3'd6;
  assign aw_burst_o            = 2'b01;

  pspin_fifo #(
    .Width(512 + BeatBytes + 1),
    .Depth(2)
  ) u_w (
    .clk_i,
    .rst_ni,
    .valid_i(goes || fills),
    .ready_o(w_ready),
    .data_i (fills ? {512'd0, 64'd0, fill_q == (LenWidth + 1)'(1)} : {data, strobe, ends}),
    .valid_o(w_valid_o),
    .ready_i(w_ready_i),
    .data_o ({w_data_o, w_strb_o, w_last_o}),
    .count_o(w_count)
  );

  // ---- Outstanding bursts, in order per identifier: whether a write ends with it. Bursts of an expired identifier are
  // late: their responses are dropped.
  logic [Ids-1:0] refused_q, pops, tells_end;
  logic           b_taken;

  assign b_ready_o = expires == '0 && expiring_q == '0 && !discarded_q;
  assign b_taken   = b_valid_i && b_ready_o;

  for (genvar i = 0; i < Ids; i++) begin : g_id
    logic        is_this, waits, moves, is_cut;
    logic [31:0] timer_q;

    assign is_this      = b_taken && b_id_i == IdWidth'(i);
    assign is_dead[i]   = late_q[i] != '0 || expiring_q[i];
    assign answers[i]   = is_this && late_q[i] == '0 && is_owed[i];
    assign waits        = is_owed[i] || (host_write_valid_i && host_write_id_i == 2'(i));
    assign moves        = answers[i] || (goes && host_write_id_i == 2'(i) && !is_owed[i]) || expiring_q != '0 || (discards && host_write_valid_i);
    assign is_due[i]    = timeout_i != '0 && timer_q >= timeout_i;

    // The write that is being discarded ends with its last beat, not with its burst.
    assign is_cut       = discards_q && current_q == 2'(i) && owed[i] == BurstsWidth'(1) && cut_q;
    assign pops[i]      = expiring_q[i] && !discarded_q;
    assign tells_end[i] = pops[i] && is_end[i] && !is_cut;

    pspin_fifo #(
      .Width(1),
      .Depth(Bursts)
    ) u_owed (
      .clk_i,
      .rst_ni,
      .valid_i(goes && begins && host_write_id_i == 2'(i)),
      .ready_o(has_room[i]),
      .data_i (count_t'(length) == left),
      .valid_o(is_owed[i]),
      .ready_i(answers[i] || pops[i]),
      .data_o (is_end[i]),
      .count_o(owed[i])
    );

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        refused_q[i]  <= 1'b0;
        expiring_q[i] <= 1'b0;
        late_q[i]     <= '0;
        timer_q       <= '0;
      end else begin
        timer_q <= waits && !moves && !expires[i] ? timer_q + 32'(!is_due[i]) : '0;
        if (answers[i]) refused_q[i] <= !is_end[i] && (refused_q[i] || b_resp_i[1]);
        if (pops[i]) begin
          refused_q[i]  <= 1'b0;
          expiring_q[i] <= owed[i] > BurstsWidth'(1);
          late_q[i]     <= late_q[i] + BurstsWidth'(is_owed[i]);
        end else begin
          if (expires[i]) expiring_q[i] <= is_owed[i];
          if (is_this && late_q[i] != '0) late_q[i] <= late_q[i] - 1'b1;
        end
      end
    end
  end

  // One identifier expires at a time.
  always_comb begin
    expires = '0;
    for (int unsigned i = 0; i < Ids; i++) begin
      if (is_due[i] && expires == '0 && expiring_q == '0 && !discarded_q) expires[i] = 1'b1;
    end
  end

  // The burst of the discarded write is still owed.
  logic cut_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cut_q       <= 1'b0;
      discarded_q <= 1'b0;
    end else begin
      discarded_q <= discarded;
      if (expires[current_q] && !is_first) cut_q <= in_burst_q;
      else if (discarded) cut_q <= 1'b0;
    end
  end

  // The end follows the last beat of the write by a cycle, as a response would.
  always_ff @(posedge clk_i) discarded_id_q <= host_write_id_i;

  // A write ends by a response, by a time-out, or discarded.
  logic [Ids-1:0] ends_by_answer, refuses;

  always_comb begin
    told_id = discarded_id_q;
    for (int unsigned i = 0; i < Ids; i++) begin
      ends_by_answer[i] = answers[i] && is_end[i];
      refuses[i]        = b_resp_i[1] || refused_q[i];
      if (ends_by_answer[i] || tells_end[i]) told_id = 2'(i);
    end
  end

  assign tells                  = discarded_q || tells_end != '0;
  assign stray_o                = b_taken && answers == '0;
  assign host_written_id_o      = told_id;
  assign host_written_valid_o   = tells || ends_by_answer != '0;
  assign host_written_refused_o = tells || (ends_by_answer & refuses) != '0;

  logic unused;
  assign unused = ^{aw_count, w_count, b_resp_i[0]};

endmodule
