// SPDX-License-Identifier: Apache-2.0
// Types that units share. What depends on a machine file is a parameter, not here.
package pspin_pkg;

  // The operation of an access to memory, as the core says it on data_atop_o: bit 5 is set for an atomic one, and the others are
  // bits 31 to 27 of the instruction (RISC-V Unpriv. "A" extension).
  typedef enum logic [5:0] {
    AtopNone = 6'b0_00000,
    AtopAdd  = 6'b1_00000,
    AtopSwap = 6'b1_00001,
    AtopLr   = 6'b1_00010,
    AtopSc   = 6'b1_00011,
    AtopXor  = 6'b1_00100,
    AtopOr   = 6'b1_01000,
    AtopAnd  = 6'b1_01100,
    AtopMin  = 6'b1_10000,
    AtopMax  = 6'b1_10100,
    AtopMinu = 6'b1_11000,
    AtopMaxu = 6'b1_11100
  } atop_e;

  // The part that a handler plays for its message (PsPIN II).
  typedef enum logic [1:0] {
    RoleHeader     = 2'd0,
    RolePayload    = 2'd1,
    RoleCompletion = 2'd2
  } role_e;

  // What a message queue waits for (PsPIN III-B1).
  typedef enum logic [2:0] {
    MpqFree,
    MpqHeader,             // the header handler has not run
    MpqHeaderRunning,      // it runs alone, on the first packet
    MpqPayload,            // payload handlers run on all packets, the first one included
    MpqDraining,           // the last packet has been sent, and handlers still run
    MpqCompletion,         // the completion handler may run
    MpqCompletionRunning,  // it runs alone, on the last packet
    MpqReset               // the message was given up: packets are fed back, running handlers end
  } mpq_state_e;

  // Where a packet or another piece of data lies.
  typedef struct packed {
    logic [31:0] address;
    logic [31:0] size;
  } range_t;

  localparam int unsigned SizeWidth    = 16;  // of packets: up to 65,535 B
  localparam int unsigned ContextWidth = 8;   // of numbers of execution contexts
  localparam int unsigned ClusterWidth = 8;   // of numbers of clusters
  localparam int unsigned HpuWidth     = 5;   // of numbers of HPUs within their cluster
  localparam int unsigned SlotWidth    = 3;   // of places of commands within an HPU driver
  localparam int unsigned BeatBytes    = 64;  // of the wide interconnects

  // A handler execution request (PsPIN III-A): a packet in L2 that is to be processed.
  typedef struct packed {
    logic [31:0]             message;   // names the queue and the home cluster
    logic [31:0]             flow;      // by which handlers know the message
    logic                    eom;       // the last packet of the message
    logic [31:0]             address;   // of the packet in L2
    logic [SizeWidth-1:0]    size;
    logic [SizeWidth-1:0]    transfer;  // bytes that are copied to L1
    logic [ContextWidth-1:0] execution_context;
    logic [31:0]             user;      // the NIC's own number, which comes back in the feedback
  } her_t;

  // A handler that is to run on a packet.
  typedef struct packed {
    role_e       role;
    logic [15:0] mpq;
    logic        feeds_back;  // its end is the end of the packet
    her_t        her;
  } task_t;

  typedef struct packed {
    logic [ClusterWidth-1:0] cluster;
    logic [HpuWidth-1:0]     hpu;
  } hpu_id_t;

  // The end of a task (crates/card/pspin-unit/src/her.rs, TaskOutcome).
  typedef enum logic [2:0] {
    EndDone,
    EndSkipped,
    EndFaulted,
    EndTimedOut,
    EndMessageReset
  } end_e;

  // Causes of a failure, as the descriptor in host memory has them (crates/card/pspin-unit/src/status.rs).
  typedef enum logic [3:0] {
    CauseNone       = 4'd0,
    CauseLoad       = 4'd1,
    CauseStore      = 4'd2,
    CauseMisaligned = 4'd3,
    CauseFetch      = 4'd4,
    CauseIllegal    = 4'd5,
    CauseBreakpoint = 4'd6,
    CauseCommand    = 4'd7,
    CauseHost       = 4'd8,
    CauseWatchdog   = 4'd9,
    CauseIdle       = 4'd10,
    CauseReported   = 4'd11
  } cause_e;

  typedef struct packed {
    end_e        kind;
    cause_e      cause;
    logic [31:0] pc;
    logic [63:0] address;  // of the access, in the unit or in host memory, or the code that was reported
  } outcome_t;

  // The end of a task on its way to the queue engine and the NIC.
  typedef struct packed {
    role_e       role;
    logic [15:0] mpq;
    logic        feeds_back;
    hpu_id_t     hpu;
    outcome_t    outcome;
    her_t        her;
  } completion_t;

  // The unit is done with a packet (PsPIN III-B1).
  typedef struct packed {
    logic [31:0]          message;
    logic [31:0]          address;
    logic [SizeWidth-1:0] size;
    logic [SizeWidth-1:0] transfer;
    logic [31:0]          user;
    end_e                 kind;
    logic                 last;  // the number of the message may be used again
  } feedback_t;

  // A message that was given up because no packet came for it.
  typedef struct packed {
    logic [31:0]             message;
    logic [ContextWidth-1:0] execution_context;
    logic                    is_free;  // its number may be used again; otherwise the last feedback says so
  } idle_t;

  // What the scheduler does in a cycle, for counters.
  typedef struct packed {
    logic accepted;  // a request
    logic refused;   // a request, for the time being
    logic sent;      // a task to a cluster
    logic blocked;   // a task, because no cluster has room for it
    logic skipped;   // a packet, for which no handler runs
    logic held;      // a feedback, by the NIC
    logic idle;      // a message was given up
  } sched_events_t;

  // What a cluster does in a cycle, for counters.
  typedef struct packed {
    logic [HpuWidth:0] busy;       // HPUs that have a task, or start
    logic [HpuWidth:0] conflicts;  // HPUs that wait for a bank of their L1
    logic              misses;     // a line that is not in the instruction cache
  } cluster_events_t;

  // Memory that a handler may use.
  typedef struct packed {
    logic [63:0] address;
    logic [63:0] size;
  } host_range_t;

  // What a message is processed with (PsPIN III-A), except for the scratchpads, of which there is one in each cluster.
  typedef struct packed {
    logic [7:0]   tenant;
    logic         is_pinned;
    logic [7:0]   pin;          // the cluster, if pinned
    logic [63:0]  descriptor;   // in host memory; 0 when there is none
    logic [31:0]  idle_cycles;
    logic [31:0]  watchdog_cycles;
    host_range_t  host;
    range_t       handler_memory;
    range_t [2:0] handlers;     // by role_e; address 0 when there is none
  } execution_context_t;

  // What the driver on the host says to all HPUs; it changes only while they are not enabled.
  typedef struct packed {
    logic        enable;        // HPUs run
    logic [31:0] entry;         // where an HPU starts
    logic [31:0] again;         // where it starts again after a handler that failed or was killed
    range_t      static_data;   // of the program: all handlers may use it
    range_t      code;          // of the program: all handlers may read and execute it
    range_t      handler_data;  // first content of handler memory: the program may use it while it starts
  } cfg_t;

  // What an HPU may use beside scratchpads (PsPIN III-B2), at the addresses that everybody has. One without bytes is none.
  typedef struct packed {
    range_t own_stack;
    range_t static_data;
    range_t code;            // to be read only
    range_t packet;          // in L1
    range_t l2_packet;
    range_t handler_memory;
  } windows_t;

  // The kinds of commands (crates/card/pspin-unit/src/command/kinds.rs).
  typedef enum logic [2:0] {
    CommandSend,
    CommandToHost,
    CommandFromHost,
    CommandHostDirect,
    CommandHostDirectRead
  } command_e;

  // The engine that executes a command, which has its own credits.
  typedef enum logic [1:0] {
    EngineOutbound,
    EngineOffCluster,
    EngineDirect
  } engine_e;

  // A command of a handler.
  typedef struct packed {
    command_e                kind;
    hpu_id_t                 hpu;
    logic [SlotWidth-1:0]    slot;
    logic [ContextWidth-1:0] execution_context;
    range_t                  data;    // in L1 or L2, at the address that everybody has
    logic [63:0]             host;
    logic [31:0]             node;
    logic [31:0]             flow;
    logic [31:0]             user;
    logic                    has_event;
    logic [63:0]             immediate;
    logic [6:0]              immediate_size;
  } command_t;

  // The end of a command, on its way to the HPU.
  typedef struct packed {
    hpu_id_t              hpu;
    logic [SlotWidth-1:0] slot;
    logic                 is_refused;  // by the host
    logic [63:0]          host;        // the address that was refused
  } command_end_t;

  // The response to a command, for one HPU.
  typedef struct packed {
    hpu_id_t              hpu;
    logic [SlotWidth-1:0] slot;
    logic                 is_refused;
    logic [63:0]          host;       // the address that was refused
    logic [511:0]         data;       // of a host-direct read
  } response_t;

  // A word that an HPU asks a memory for.
  typedef struct packed {
    logic        we;
    atop_e       atop;
    logic [31:0] address;
    logic [3:0]  be;
    logic [31:0] wdata;
    logic        expected_valid;  // of a store-conditional
    logic [31:0] expected;
  } word_request_t;

  // A beat that is written to a wide memory.
  typedef struct packed {
    logic [31:0]          address;  // of the beat: a multiple of BeatBytes
    logic [BeatBytes-1:0] strobe;
    logic [511:0]         wdata;
  } beat_request_t;

  // The memories of the unit. Each cluster has the L1 of its number; all HPUs have them at the same addresses
  // (crates/card/pspin-unit/src/memory/arena.rs).
  typedef enum logic [2:0] {
    PlaceNone,
    PlaceL1,
    PlaceHandler,
    PlacePacket,
    PlaceProgram
  } place_e;

  localparam logic [31:0] L1Start      = 32'h1000_0000;
  localparam logic [31:0] HandlerStart = 32'h1C00_0000;
  localparam logic [31:0] PacketStart  = 32'h1C40_0000;
  localparam logic [31:0] ProgramStart = 32'h1D00_0000;
  localparam logic [31:0] OwnL1Start   = 32'h1B00_0000;  // an HPU sees the L1 of its cluster here as well
  localparam logic [31:0] L1Span       = 32'h0040_0000;  // from the L1 of one cluster to that of the next

  // The memory to which an address belongs, whether it is as large or not.
  function automatic place_e place_of(logic [31:0] address);
    unique case (address) inside
      [L1Start : 32'h19FF_FFFF]:            return PlaceL1;
      [HandlerStart : PacketStart - 1'b1]:  return PlaceHandler;
      [PacketStart : ProgramStart - 1'b1]:  return PlacePacket;
      [ProgramStart : 32'h1DFF_FFFF]:       return PlaceProgram;
      default:                              return PlaceNone;
    endcase
  endfunction

  localparam int unsigned L1SpanWidth = 22;

  // The cluster of an address in L1: each has 4 MiB of addresses.
  function automatic logic [ClusterWidth-1:0] cluster_of(logic [31:0] address);
    return ClusterWidth'((address - L1Start) >> L1SpanWidth);
  endfunction

  // The next beat of a copy by the DMA engine of a cluster. It uses the channels of both memories, and reads a word unless the
  // realigner already has all bytes.
  typedef struct packed {
    logic                    valid;
    logic                    reads;
    logic [31:0]             address;     // that is read: a multiple of BeatBytes
    place_e                  from;
    place_e                  to;
    logic [ClusterWidth-1:0] to_cluster;  // of `to`, if that is L1
  } dma_beat_t;

  // What the driver on the host is told (crates/base/abi/src/pspin.rs, Events).
  typedef enum logic [2:0] {
    NoticeNone,
    NoticeFailed,
    NoticeIdle,
    NoticeCommand,
    NoticeTerminated
  } notice_e;

  typedef struct packed {
    notice_e                 kind;
    cause_e                  cause;
    logic [1:0]              role;    // role_e; 3 for none
    hpu_id_t                 hpu;
    logic [ContextWidth-1:0] execution_context;
    logic [31:0]             message;
    logic [31:0]             user;
    logic [31:0]             pc;
    logic [63:0]             address;
  } driver_event_t;

  // Words of BeatBytes that a range touches, at least one.
  function automatic logic [31:0] beats_of(range_t data);
    return ((32'(data.address[5:0]) + (data.size == '0 ? 32'd0 : data.size - 1'b1)) >> 6) + 1'b1;
  endfunction

  // Packets of the network that are processed by the unit, and how (pspin_nic_flows).
  typedef struct packed {
    logic                    is_used;
    logic [7:0]              protocol;           // of IPv4: 1 is ICMP, 17 is UDP
    logic                    has_port;           // UDP, TCP: only this destination port
    logic [15:0]             port;
    logic                    has_address;        // only this destination address
    logic [31:0]             address;
    logic [ContextWidth-1:0] execution_context;
    logic [15:0]             packets;            // of a message: 1 when each packet is one
    logic [SizeWidth-1:0]    transfer;           // bytes of a packet that are copied to L1, at most
  } nic_rule_t;

  // Engine of a command.
  function automatic engine_e engine_of(command_e kind);
    unique case (kind)
      CommandSend:                     return EngineOutbound;
      CommandToHost, CommandFromHost:  return EngineOffCluster;
      default:                         return EngineDirect;
    endcase
  endfunction

endpackage
