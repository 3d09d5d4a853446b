// SPDX-License-Identifier: Apache-2.0
// Interconnect of NIC and host (PsPIN III-C): for each of L1, L2 handler memory, L2 packet buffer and program memory, a
// write port and a read port for beats.
//
// At each write port, writes of the NIC and host data for handlers alternate. An accepted beat is visible to all later
// accesses. At each read port, the command engines and the outside are served round robin, a beat each. A read accepted
// in cycle c uses its memory in c + 1, and its data arrives in c + 4; if the bank of an L2 memory is busy then, later
// reads of the same reader and of the same memory stall.
module pspin_nhi
  import pspin_pkg::*;
#(
  parameter int unsigned Clusters     = 4,
  parameter int unsigned L1Bytes      = 1048576,
  parameter int unsigned HandlerBytes = 4194304,
  parameter int unsigned PacketBytes  = 4194304,
  parameter int unsigned ProgramBytes = 32768
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // NIC and host: beats to write. Ready depends on the address, and on the off-cluster DMA engine if it writes to the
  // same port. Missing: the beat accepted in this cycle is unmapped.
  input  logic                write_valid_i,
  output logic                write_ready_o,
  input  beat_request_t       write_i,
  output logic                write_missing_o,

  // Off-cluster DMA engine: data from the host. Ready depends on the address, and on the NIC if it writes to the same port.
  input  logic                host_valid_i,
  output logic                host_ready_o,
  input  beat_request_t       host_i,

  // Outbound engine, off-cluster DMA engine, and NIC and host: beats to read, for which they have buffers. Ready
  // depends on the address, and on the others if they read the same memory. Missing: the address of NIC and host is
  // unmapped; the data is 0.
  input  logic [2:0]          read_valid_i,
  output logic [2:0]          read_ready_o,
  input  logic [31:0]         read_address_i [3],
  output logic [2:0]          read_rvalid_o,
  output logic [511:0]        read_data_o [3],
  output logic                read_missing_o,

  // L1 of each cluster. Data arrives three cycles after its read.
  output logic [Clusters-1:0] l1_write_valid_o,
  input  logic [Clusters-1:0] l1_write_ready_i,
  output beat_request_t       l1_write_o,
  output logic [Clusters-1:0] l1_read_valid_o,
  input  logic [Clusters-1:0] l1_read_ready_i,
  output logic [31:0]         l1_read_address_o [Clusters],
  input  logic [511:0]        l1_read_data_i [Clusters],

  // L2 handler memory, L2 packet buffer, program memory. Data arrives three cycles after its read.
  output logic [2:0]          memory_write_valid_o,
  input  logic [2:0]          memory_write_ready_i,
  output beat_request_t       memory_write_o [3],
  output logic [2:0]          memory_read_valid_o,
  input  logic [2:0]          memory_read_ready_i,
  output logic [31:0]         memory_read_address_o [3],
  input  logic [511:0]        memory_read_data_i [3]
);

  localparam int unsigned Memories = 3 + Clusters;

  typedef logic [Memories-1:0] memories_t;

  // Memory of a beat; none when the address is beyond its end.
  function automatic memories_t memory_of(logic [31:0] address);
    logic [31:0] offset;
    memory_of = '0;
    unique case (place_of(address))
      PlaceHandler: memory_of[0] = address - HandlerStart < HandlerBytes;
      PlacePacket:  memory_of[1] = address - PacketStart < PacketBytes;
      PlaceProgram: memory_of[2] = address - ProgramStart < ProgramBytes;
      PlaceL1: begin
        offset = address - L1Start - (32'(cluster_of(address)) << 22);
        for (int unsigned i = 0; i < Clusters; i++) begin
          memory_of[3+i] = cluster_of(address) == ClusterWidth'(i) && offset < L1Bytes;
        end
      end
      default: ;
    endcase
  endfunction

  // ---- Write ports: [0..2] as the memories, [3] all L1.
  localparam int unsigned Ports = 4;

  memories_t        nic_target, host_target, write_ready;
  logic [Ports-1:0] nic_port, host_port, nic_taken, host_taken;

  // Port of a memory.
  function automatic logic [Ports-1:0] port_of(memories_t memory);
    return {memory[Memories-1:3] != '0, memory[2:0]};
  endfunction

  assign write_ready = {l1_write_ready_i, memory_write_ready_i};
  assign nic_target  = memory_of(write_i.address);
  assign host_target = memory_of(host_i.address);
  assign nic_port    = {Ports{write_valid_i}} & port_of(nic_target);
  assign host_port   = {Ports{host_valid_i}} & port_of(host_target);

  for (genvar p = 0; p < Ports; p++) begin : gen_port
    logic          any, is_host, is_taken;
    memories_t     target;
    beat_request_t beat;

    pspin_rr_arbiter #(
      .N(2)
    ) u_writers (
      .clk_i,
      .rst_ni,
      .requests_i({host_port[p], nic_port[p]}),
      .take_i    (is_taken),
      .valid_o   (any),
      .index_o   (is_host)
    );

    assign beat          = is_host ? host_i : write_i;
    assign target        = is_host ? host_target : nic_target;
    assign is_taken      = any && (target & write_ready) != '0;
    assign nic_taken[p]  = is_taken && !is_host;
    assign host_taken[p] = is_taken && is_host;

    if (p < 3) begin : gen_memory
      assign memory_write_valid_o[p] = any;
      assign memory_write_o[p]       = beat;
    end else begin : gen_l1
      assign l1_write_valid_o = {Clusters{any}} & target[Memories-1:3];
      assign l1_write_o       = beat;
    end
  end

  assign write_ready_o   = nic_target == '0 || nic_taken != '0;
  assign write_missing_o = nic_target == '0;
  assign host_ready_o    = host_target == '0 || host_taken != '0;

  // ---- Read ports. L2 reads a beat in the cycle after its choice; L1 gets the request at once, and uses its banks in
  // that cycle, too.
  localparam int unsigned Readers = 3;
  localparam int unsigned Outside = 2;

  typedef struct packed {
    memories_t   memory;
    logic [31:0] address;
  } read_t;

  memories_t          source [Readers];
  logic [Readers-1:0] valid_q, moves, takes, finds_none;
  read_t              read_q [Readers];
  memories_t          held;                // a beat stalls on its bank
  logic [Readers-1:0] grant [Memories];

  for (genvar r = 0; r < Readers; r++) begin : gen_reader
    assign source[r]     = memory_of(read_address_i[r]);
    assign moves[r]      = !valid_q[r] || read_q[r].memory[2:0] == '0 || (read_q[r].memory[2:0] & memory_read_ready_i) != '0;
    assign finds_none[r] = read_valid_i[r] && moves[r] && source[r] == '0;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) valid_q[r] <= 1'b0;
      else if (moves[r]) valid_q[r] <= takes[r];
    end

    always_ff @(posedge clk_i) if (takes[r]) read_q[r] <= '{memory: source[r], address: read_address_i[r]};
  end

  always_comb begin
    held = '0;
    for (int unsigned r = 0; r < Readers; r++) if (!moves[r]) held |= read_q[r].memory;
  end

  for (genvar m = 0; m < Memories; m++) begin : gen_source
    logic [Readers-1:0] asks;
    logic               any, is_read;
    logic [1:0]         reader;

    for (genvar r = 0; r < Readers; r++) begin : gen_ask
      assign asks[r] = read_valid_i[r] && moves[r] && source[r][m];
    end

    pspin_rr_arbiter #(
      .N(Readers)
    ) u_readers (
      .clk_i,
      .rst_ni,
      .requests_i(asks),
      .take_i    (!held[m]),
      .valid_o   (any),
      .index_o   (reader)
    );

    assign grant[m] = Readers'(is_read) << reader;

    if (m < 3) begin : gen_memory
      assign is_read = any && !held[m];

      always_comb begin
        memory_read_valid_o[m]   = 1'b0;
        memory_read_address_o[m] = '0;
        for (int unsigned r = 0; r < Readers; r++) begin
          if (valid_q[r] && read_q[r].memory[m]) begin
            memory_read_valid_o[m]   = 1'b1;
            memory_read_address_o[m] = memory_read_address_o[m] | read_q[r].address;
          end
        end
      end
    end else begin : gen_l1
      assign is_read                = any && l1_read_ready_i[m-3];
      assign l1_read_valid_o[m-3]   = any;
      assign l1_read_address_o[m-3] = read_address_i[reader];
    end
  end

  always_comb begin
    takes = finds_none;
    for (int unsigned m = 0; m < Memories; m++) takes |= grant[m];
  end

  assign read_ready_o = takes;

  // ---- The data of a beat that was read three cycles before.
  for (genvar r = 0; r < Readers; r++) begin : gen_way
    logic         unused_empty;
    memories_t    here;
    memories_t    from_q [3];
    logic [511:0] l1_data_q;

    pspin_delay #(
      .Width (Memories),
      .Cycles(3)
    ) u_way (
      .clk_i,
      .rst_ni,
      .valid_i(valid_q[r] && moves[r]),
      .data_i (read_q[r].memory),
      .valid_o(read_rvalid_o[r]),
      .data_o (here),
      .empty_o(unused_empty)
    );

    // L1 was asked a cycle earlier.
    always_ff @(posedge clk_i) begin
      from_q    <= '{source[r], from_q[0], from_q[1]};
      l1_data_q <= '0;
      for (int unsigned i = 0; i < Clusters; i++) if (from_q[2][3+i]) l1_data_q <= l1_read_data_i[i];
    end

    always_comb begin
      read_data_o[r] = here[Memories-1:3] != '0 ? l1_data_q : '0;
      for (int unsigned i = 0; i < 3; i++) if (here[i]) read_data_o[r] = memory_read_data_i[i];
    end

    if (r == Outside) begin : gen_missing
      assign read_missing_o = here == '0;
    end
  end

endmodule
