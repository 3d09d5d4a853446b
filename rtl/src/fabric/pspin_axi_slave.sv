// SPDX-License-Identifier: Apache-2.0
// AXI4 port through which NIC and host access the memories of the unit (PsPIN III-C): bursts become beats of the
// NIC-host interconnect. Writes and reads are independent; bursts of each are executed in order. A write's response
// follows once all of its beats are visible to later accesses.
//
// Bursts must have incrementing addresses (INCR), beats of at most 64 bytes, and stay within 4 KiB. Others are refused
// with SLVERR, and nothing is written; unmapped beats return DECERR.
module pspin_axi_slave
  import pspin_pkg::*;
#(
  parameter int unsigned IdWidth = 4,
  parameter int unsigned Buffer  = 8,  // beats being read that have not left
  parameter int unsigned Bursts  = 4   // bursts in flight in each direction
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // NIC and host.
  input  logic                 aw_valid_i,
  output logic                 aw_ready_o,
  input  logic [IdWidth-1:0]   aw_id_i,
  input  logic [31:0]          aw_addr_i,
  input  logic [7:0]           aw_len_i,
  input  logic [2:0]           aw_size_i,
  input  logic [1:0]           aw_burst_i,

  input  logic                 w_valid_i,
  output logic                 w_ready_o,
  input  logic [511:0]         w_data_i,
  input  logic [BeatBytes-1:0] w_strb_i,
  input  logic                 w_last_i,

  output logic                 b_valid_o,
  input  logic                 b_ready_i,
  output logic [IdWidth-1:0]   b_id_o,
  output logic [1:0]           b_resp_o,

  input  logic                 ar_valid_i,
  output logic                 ar_ready_o,
  input  logic [IdWidth-1:0]   ar_id_i,
  input  logic [31:0]          ar_addr_i,
  input  logic [7:0]           ar_len_i,
  input  logic [2:0]           ar_size_i,
  input  logic [1:0]           ar_burst_i,

  output logic                 r_valid_o,
  input  logic                 r_ready_i,
  output logic [IdWidth-1:0]   r_id_o,
  output logic [511:0]         r_data_o,
  output logic [1:0]           r_resp_o,
  output logic                 r_last_o,

  // pspin_unit, or pspin_nhi.
  output logic                 write_valid_o,
  input  logic                 write_ready_i,
  output beat_request_t        write_o,
  input  logic                 write_missing_i,
  output logic                 read_valid_o,
  input  logic                 read_ready_i,
  output logic [31:0]          read_address_o,
  input  logic                 read_rvalid_i,
  input  logic [511:0]         read_data_i,
  input  logic                 read_missing_i
);

  localparam logic [1:0] Okay = 2'b00, SlvErr = 2'b10, DecErr = 2'b11, Incr = 2'b01;

  typedef struct packed {
    logic [IdWidth-1:0] id;
    logic [31:0]        address;
    logic [7:0]         beats;    // minus one
    logic [2:0]         size;
    logic               is_refused;
  } burst_t;

  // Address of the next beat: after the bytes of this one.
  function automatic logic [31:0] next_address(logic [31:0] address, logic [2:0] size);
    return ((address >> size) + 1'b1) << size;
  endfunction

  // True for a burst that the port refuses.
  function automatic logic refuses(logic [11:0] offset, logic [7:0] len, logic [2:0] size, logic [1:0] burst);
    return burst != Incr || size > 3'($clog2(BeatBytes)) || 13'(offset >> size) + 13'(len) >= 13'd4096 >> size;
  endfunction

  ////////////
  // Writes //
  ////////////

  // Beat in flight to the memories. The last one of a burst carries the response.
  typedef struct packed {
    logic [IdWidth-1:0] id;
    logic               is_last;
    logic               is_refused;
    beat_request_t      beat;
  } write_t;

  localparam int unsigned BurstsWidth = $clog2(Bursts + 1);

  burst_t                 aw;
  write_t                 in, write;
  logic                   aw_valid, w_ready, write_taken, write_stored, response_ready;
  logic [7:0]             w_index_q;
  logic [31:0]            w_address_q, w_address;
  logic [1:0]             resp_q, resp;
  logic [BurstsWidth-1:0] aw_count, b_count;
  logic [1:0]             w_count;

  pspin_fifo #(
    .Width($bits(burst_t)),
    .Depth(Bursts)
  ) u_aw (
    .clk_i,
    .rst_ni,
    .valid_i(aw_valid_i),
    .ready_o(aw_ready_o),
    .data_i ({aw_id_i, aw_addr_i, aw_len_i, aw_size_i, refuses(aw_addr_i[11:0], aw_len_i, aw_size_i, aw_burst_i)}),
    .valid_o(aw_valid),
    .ready_i(w_valid_i && w_ready_o && in.is_last),
    .data_o (aw),
    .count_o(aw_count)
  );

  assign w_ready_o = aw_valid && w_ready;
  assign w_address = w_index_q == '0 ? aw.address : w_address_q;
  assign in        = '{
      id:         aw.id,
      is_last:    w_index_q == aw.beats,
      is_refused: aw.is_refused,
      beat:       '{address: {w_address[31:6], 6'd0}, strobe: w_strb_i, wdata: w_data_i}};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) w_index_q <= '0;
    else if (w_valid_i && w_ready_o) w_index_q <= in.is_last ? '0 : w_index_q + 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (w_valid_i && w_ready_o) w_address_q <= next_address(w_address, aw.size);
  end

  pspin_fifo #(
    .Width($bits(write_t)),
    .Depth(2)
  ) u_w (
    .clk_i,
    .rst_ni,
    .valid_i(w_valid_i && aw_valid),
    .ready_o(w_ready),
    .data_i (in),
    .valid_o(write_stored),
    .ready_i(write_taken),
    .data_o (write),
    .count_o(w_count)
  );

  // Room for the response persists while a beat waits.
  assign write_valid_o = write_stored && response_ready && !write.is_refused;
  assign write_o       = write.beat;
  assign write_taken   = response_ready && (write_ready_i || write.is_refused);

  always_comb begin
    resp = resp_q;
    if (write.is_refused) resp = SlvErr;
    else if (write_missing_i) resp = DecErr;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) resp_q <= Okay;
    else if (write_stored && write_taken) resp_q <= write.is_last ? Okay : resp;
  end

  pspin_fifo #(
    .Width(IdWidth + 2),
    .Depth(Bursts)
  ) u_b (
    .clk_i,
    .rst_ni,
    .valid_i(write_stored && write_taken && write.is_last),
    .ready_o(response_ready),
    .data_i ({write.id, resp}),
    .valid_o(b_valid_o),
    .ready_i(b_ready_i),
    .data_o ({b_id_o, b_resp_o}),
    .count_o(b_count)
  );

  ///////////
  // Reads //
  ///////////

  typedef struct packed {
    logic [IdWidth-1:0] id;
    logic               is_last;
    logic               is_refused;
  } read_t;

  localparam int unsigned BufferWidth = $clog2(Buffer + 1);

  burst_t                 ar;
  read_t                  asked, read;
  logic                   ar_valid, asks, leaves, has_room, asked_ready, read_valid, data_ready, is_missing, all_room;
  logic [7:0]             r_index_q;
  logic [31:0]            r_address_q, r_address;
  logic [BurstsWidth-1:0] ar_count;
  logic [BufferWidth-1:0] room, asked_count, data_count;

  pspin_fifo #(
    .Width($bits(burst_t)),
    .Depth(Bursts)
  ) u_ar (
    .clk_i,
    .rst_ni,
    .valid_i(ar_valid_i),
    .ready_o(ar_ready_o),
    .data_i ({ar_id_i, ar_addr_i, ar_len_i, ar_size_i, refuses(ar_addr_i[11:0], ar_len_i, ar_size_i, ar_burst_i)}),
    .valid_o(ar_valid),
    .ready_i(asks && asked.is_last),
    .data_o (ar),
    .count_o(ar_count)
  );

  // Refused bursts read from address 0, which is unmapped.
  assign r_address      = r_index_q == '0 ? ar.address : r_address_q;
  assign read_valid_o   = ar_valid && has_room;
  assign read_address_o = ar.is_refused ? '0 : {r_address[31:6], 6'd0};
  assign asks           = read_valid_o && read_ready_i;
  assign asked          = '{id: ar.id, is_last: r_index_q == ar.beats, is_refused: ar.is_refused};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) r_index_q <= '0;
    else if (asks) r_index_q <= asked.is_last ? '0 : r_index_q + 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (asks) r_address_q <= next_address(r_address, ar.size);
  end

  pspin_credit #(
    .Credits(Buffer)
  ) u_room (
    .clk_i,
    .rst_ni,
    .take_i     (asks),
    .give_i     (leaves),
    .available_o(has_room),
    .all_o      (all_room),
    .count_o    (room)
  );

  pspin_fifo #(
    .Width($bits(read_t)),
    .Depth(Buffer)
  ) u_asked (
    .clk_i,
    .rst_ni,
    .valid_i(asks),
    .ready_o(asked_ready),
    .data_i (asked),
    .valid_o(read_valid),
    .ready_i(leaves),
    .data_o (read),
    .count_o(asked_count)
  );

  pspin_fifo #(
    .Width(513),
    .Depth(Buffer)
  ) u_data (
    .clk_i,
    .rst_ni,
    .valid_i(read_rvalid_i),
    .ready_o(data_ready),
    .data_i ({read_missing_i, read_data_i}),
    .valid_o(r_valid_o),
    .ready_i(r_ready_i),
    .data_o ({is_missing, r_data_o}),
    .count_o(data_count)
  );

  assign leaves   = r_valid_o && r_ready_i;
  assign r_id_o   = read.id;
  assign r_last_o = read.is_last;

  always_comb begin
    r_resp_o = Okay;
    if (read.is_refused) r_resp_o = SlvErr;
    else if (is_missing) r_resp_o = DecErr;
  end

  // Beats are counted, so the last-beat flag is redundant; credits prevent overflow of the queues.
  logic unused;
  assign unused = ^{w_last_i, aw_count, w_count, b_count, ar_count, room, all_room, asked_count, data_count, asked_ready, read_valid,
                    data_ready};

endmodule
