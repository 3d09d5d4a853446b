// SPDX-License-Identifier: Apache-2.0
// Reads of the unit from host memory as AXI4 bursts (PsPIN III-C), none crossing a 4 KiB boundary. Data returns as
// beats that start with the first byte of the read. The host may interleave beats of different identifiers; those of
// each are in order.
//
// Without data for timeout_i cycles, all reads of an identifier end by a refused beat. Until the host has given all
// data that it then owes, further reads of this identifier are refused at once. Data that no read waits for is dropped.
module pspin_axi_host_read
  import pspin_pkg::*;
#(
  parameter int unsigned Ids       = 2,  // identifiers of the unit
  parameter int unsigned Reads     = 8,  // outstanding reads of each
  parameter int unsigned IdWidth   = 3,
  parameter int unsigned UserWidth = 1   // sideband bits of the address
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic [31:0]          timeout_i,  // 0: never
  output logic                 stray_o,    // a beat is dropped

  // pspin_unit: a read. One without bytes returns a beat.
  input  logic                 host_read_valid_i,
  output logic                 host_read_ready_o,
  input  logic [63:0]          host_read_address_i,
  input  logic [31:0]          host_read_size_i,
  input  logic [1:0]           host_read_id_i,
  input  logic [UserWidth-1:0] host_read_user_i,

  // pspin_unit: beats of a read. Refused: the host refused this beat or an earlier one.
  output logic                 host_data_valid_o,
  input  logic                 host_data_ready_i,
  output logic [511:0]         host_data_o,
  output logic                 host_data_last_o,
  output logic [1:0]           host_data_id_o,
  output logic                 host_data_refused_o,

  // The host.
  output logic                 ar_valid_o,
  input  logic                 ar_ready_i,
  output logic [IdWidth-1:0]   ar_id_o,
  output logic [UserWidth-1:0] ar_user_o,
  output logic [63:0]          ar_addr_o,
  output logic [7:0]           ar_len_o,
  output logic [2:0]           ar_size_o,
  output logic [1:0]           ar_burst_o,

  input  logic                 r_valid_i,
  output logic                 r_ready_o,
  input  logic [IdWidth-1:0]   r_id_i,
  input  logic [511:0]         r_data_i,
  input  logic [1:0]           r_resp_i,
  input  logic                 r_last_i
);

  localparam int unsigned LenWidth   = $clog2(4096 / BeatBytes);
  localparam int unsigned CountWidth = 27;
  localparam int unsigned ReadsWidth = $clog2(Reads + 1);
  localparam int unsigned IdIndex    = Ids > 1 ? $clog2(Ids) : 1;

  typedef logic [CountWidth-1:0] count_t;
  typedef logic [LenWidth-1:0]   len_t;

  // Shape of a read: index of its last word, and whether it has as many beats as words.
  typedef struct packed {
    logic [5:0] offset;  // offset of its first byte in its first word
    count_t     last_word;
    logic       has_all;
  } read_t;

  // ---- Bursts: each extends to the end of the read or of the page.
  logic [5:0]     offset;
  logic [31:0]    last_byte;
  logic [57:0]    word;
  count_t         index_q, left;
  len_t           length, to_page_end;
  logic           goes, is_first, is_last, ar_ready, refuses;
  logic [Ids-1:0] has_room, expires, dead_q;
  read_t          in;
  logic [IdIndex-1:0] ask_id;

  assign offset      = host_read_address_i[5:0];
  assign last_byte   = host_read_size_i - 32'(host_read_size_i != '0);
  assign in          = '{
      offset:    offset,
      last_word: count_t'((33'(last_byte) + 33'(offset)) >> 6),
      has_all:   (33'(last_byte) + 33'(offset)) >> 6 == 33'(last_byte) >> 6};
  assign left        = in.last_word - index_q;
  assign word        = host_read_address_i[63:6] + 58'(index_q);
  assign to_page_end = ~word[LenWidth-1:0];
  assign length      = left < count_t'(to_page_end) ? len_t'(left) : to_page_end;
  assign is_first    = index_q == '0;
  assign is_last     = count_t'(length) == left;
  assign ask_id      = IdIndex'(host_read_id_i);
  assign goes        = host_read_valid_i && ar_ready && (!is_first || has_room[ask_id]) && !dead_q[ask_id] && !expires[ask_id];

  // A read of an expired identifier is accepted without further bursts.
  assign refuses           = host_read_valid_i && dead_q[ask_id] && (!is_first || has_room[ask_id]);
  assign host_read_ready_o = (goes && is_last) || refuses;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) index_q <= '0;
    else if (refuses) index_q <= '0;
    else if (goes) index_q <= is_last ? '0 : index_q + count_t'(length) + 1'b1;
  end

  logic [1:0] ar_count, data_count;

  pspin_fifo #(
    .Width(2 + UserWidth + 58 + LenWidth),
    .Depth(2)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .valid_i(goes),
    .ready_o(ar_ready),
    .data_i ({host_read_id_i, host_read_user_i, word, length}),
    .valid_o(ar_valid_o),
    .ready_i(ar_ready_i),
    .data_o ({ar_id_o[1:0], ar_user_o, ar_addr_o[63:6], ar_len_o[LenWidth-1:0]}),
    .count_o(ar_count)
  );

  assign ar_id_o[IdWidth-1:2] = '0;
  assign ar_addr_o[5:0]       = '0;
  assign ar_len_o[7:LenWidth] = '0;
  assign ar_size_o            = 3'd6;
  assign ar_burst_o           = 2'b01;

  // ---- Data: a beat is the end of a word and the beginning of the next. If the last beat has only the end of the last
  // word, that word stays for it.
  logic [IdIndex-1:0]    id;
  read_t                 read [Ids];
  count_t                word_q [Ids];
  logic [511:0]          rest_q [Ids];
  logic [Ids-1:0]        refused_q, again_q, is_read, is_owed, is_due, tells_end;
  logic                  is_known;
  logic                  data_ready, is_final, is_alone, gives, comes_again, takes, refused;
  logic [511:0]          rotated, data;
  logic [ReadsWidth-1:0] reads [Ids];

  assign id          = IdIndex'(r_id_i);
  assign is_final    = word_q[id] == read[id].last_word;
  assign comes_again = is_final && read[id].has_all && read[id].offset != '0 && word_q[id] != '0 && !again_q[id];
  assign is_alone    = read[id].offset == '0 || again_q[id] || (is_final && word_q[id] == '0);
  assign gives       = is_alone || word_q[id] != '0;
  assign is_known    = 32'(r_id_i) < Ids && is_owed[id] && !dead_q[id];
  assign takes       = r_valid_i && is_known && (data_ready || !gives) && tells_end == '0;
  assign stray_o     = r_valid_i && !is_known;
  assign r_ready_o   = (takes && !comes_again) || stray_o;
  assign refused     = refused_q[id] || r_resp_i[1];

  always_comb begin
    rotated = r_data_i;
    for (int unsigned i = 0; i < 6; i++) begin
      if (read[id].offset[i]) rotated = rotated >> (8 << i) | rotated << (512 - (8 << i));
    end
    for (int unsigned i = 0; i < BeatBytes; i++) begin
      data[i*8+:8] = is_alone || 7'(i) + 7'(read[id].offset) >= 7'(BeatBytes) ? rotated[i*8+:8] : rest_q[id][i*8+:8];
    end
  end

  for (genvar i = 0; i < Ids; i++) begin : g_id
    logic               is_this, waits, moves;
    logic [31:0]        timer_q;
    logic [CountWidth-1:0] owed_q;  // bursts whose last beat is missing

    assign is_this      = takes && id == IdIndex'(i);
    assign is_owed[i]   = owed_q != '0;
    assign waits        = is_owed[i] || (host_read_valid_i && host_read_id_i == 2'(i));
    assign moves        = (r_valid_i && r_id_i == IdWidth'(i)) || (goes && host_read_id_i == 2'(i) && !is_owed[i]) || dead_q[i];
    assign is_due[i]    = timeout_i != '0 && timer_q >= timeout_i;

    // All reads of an expired identifier end, one in a cycle.
    assign tells_end[i] = dead_q[i] && is_read[i] && (dead_q & is_read & ~({Ids{1'b1}} << i)) == '0;

    pspin_fifo #(
      .Width($bits(read_t)),
      .Depth(Reads)
    ) u_reads (
      .clk_i,
      .rst_ni,
      .valid_i((goes || refuses) && is_first && host_read_id_i == 2'(i)),
      .ready_o(has_room[i]),
      .data_i (in),
      .valid_o(is_read[i]),
      .ready_i((is_this && is_final && !comes_again) || (tells_end[i] && data_ready)),
      .data_o (read[i]),
      .count_o(reads[i])
    );

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        word_q[i]    <= '0;
        again_q[i]   <= 1'b0;
        refused_q[i] <= 1'b0;
        dead_q[i]    <= 1'b0;
        timer_q      <= '0;
        owed_q       <= '0;
      end else begin
        timer_q <= waits && !moves && !expires[i] ? timer_q + 32'(!is_due[i]) : '0;
        owed_q  <= owed_q + CountWidth'(goes && host_read_id_i == 2'(i))
                 - CountWidth'(r_valid_i && r_ready_o && r_id_i == IdWidth'(i) && r_last_i && is_owed[i]);
        if (expires[i]) dead_q[i] <= 1'b1;
        else if (!is_owed[i] && !is_read[i] && !(refuses && host_read_id_i == 2'(i))) dead_q[i] <= 1'b0;
        if (dead_q[i]) begin
          word_q[i]    <= '0;
          again_q[i]   <= 1'b0;
          refused_q[i] <= 1'b0;
        end else if (is_this) begin
          again_q[i] <= comes_again;
          if (!comes_again) begin
            word_q[i]    <= is_final ? '0 : word_q[i] + 1'b1;
            refused_q[i] <= refused && !is_final;
          end
        end
      end
    end

    always_ff @(posedge clk_i) if (is_this) rest_q[i] <= rotated;
  end

  logic [1:0] told_id;

  always_comb begin
    told_id = '0;
    expires = '0;
    for (int unsigned i = 0; i < Ids; i++) begin
      if (tells_end[i]) told_id = 2'(i);
      if (is_due[i]) expires[i] = !dead_q[i];
    end
  end

  pspin_fifo #(
    .Width(512 + 4),
    .Depth(2)
  ) u_data (
    .clk_i,
    .rst_ni,
    .valid_i((r_valid_i && is_known && gives) || tells_end != '0),
    .ready_o(data_ready),
    .data_i (tells_end != '0 ? {512'd0, 1'b1, told_id, 1'b1} : {data, is_final && !comes_again, r_id_i[1:0], refused}),
    .valid_o(host_data_valid_o),
    .ready_i(host_data_ready_i),
    .data_o ({host_data_o, host_data_last_o, host_data_id_o, host_data_refused_o}),
    .count_o(data_count)
  );

  logic unused;
  assign unused = ^{ar_count, data_count, reads[0], r_resp_i[0], r_id_i};

endmodule
