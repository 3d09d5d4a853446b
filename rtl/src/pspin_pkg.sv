// SPDX-License-Identifier: Apache-2.0
// Types shared by modules. Values that depend on a machine file are parameters, not here.
package pspin_pkg;

  // Operation of a memory access, as on the core's data_atop_o: bit 5 is set for an atomic one, and the others are bits
  // 31 to 27 of the instruction (RISC-V Unpriv. "A" extension).
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

  // Role of a handler in its message (PsPIN II).
  typedef enum logic [1:0] {
    RoleHeader     = 2'd0,
    RolePayload    = 2'd1,
    RoleCompletion = 2'd2
  } role_e;

  // State of a message queue (PsPIN III-B1).
  typedef enum logic [2:0] {
    MpqFree,
    MpqHeader,             // the header handler has not run
    MpqHeaderRunning,      // it runs alone, on the first packet
    MpqPayload,            // payload handlers run on all packets, including the first
    MpqDraining,           // the last packet is sent, and handlers still run
    MpqCompletion,         // the completion handler may run
    MpqCompletionRunning,  // it runs alone, on the last packet
    MpqReset               // the message is given up: packets are fed back, running handlers end
  } mpq_state_e;

  // Address range of a packet or other data.
  typedef struct packed {
    logic [31:0] address;
    logic [31:0] size;
  } range_t;

  localparam int unsigned SizeWidth    = 16;  // width of packet sizes: up to 65,535 B
  localparam int unsigned ContextWidth = 8;   // width of execution context numbers
  localparam int unsigned ClusterWidth = 8;   // width of cluster numbers
  localparam int unsigned HpuWidth     = 5;   // width of HPU numbers within their cluster
  localparam int unsigned SlotWidth    = 3;   // width of command slot numbers within an HPU driver
  localparam int unsigned BeatBytes    = 64;  // beat of the wide interconnects

  // Handler execution request (PsPIN III-A): a packet in L2 to be processed.
  typedef struct packed {
    logic [31:0]             message;   // selects the queue and the home cluster
    logic [31:0]             flow;      // message id seen by handlers
    logic                    eom;       // the last packet of the message
    logic [31:0]             address;   // address of the packet in L2
    logic [SizeWidth-1:0]    size;
    logic [SizeWidth-1:0]    transfer;  // bytes that are copied to L1
    logic [ContextWidth-1:0] execution_context;
    logic [31:0]             user;      // NIC's tag, returned in the feedback
  } her_t;

  // A task: handler to run on a packet.
  typedef struct packed {
    role_e       role;
    logic [15:0] mpq;
    logic        feeds_back;  // its end ends the packet
    her_t        her;
  } task_t;

  typedef struct packed {
    logic [ClusterWidth-1:0] cluster;
    logic [HpuWidth-1:0]     hpu;
  } hpu_id_t;

  // End of a task (crates/card/pspin-unit/src/her.rs, TaskOutcome).
  typedef enum logic [2:0] {
    EndDone,
    EndSkipped,
    EndFaulted,
    EndTimedOut,
    EndMessageReset
  } end_e;

  // Causes of a failure, as in the descriptor in host memory (crates/card/pspin-unit/src/status.rs).
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
    CauseReported   = 4'd11,
    CauseRequest    = 4'd12,
    CauseDisabled   = 4'd13
  } cause_e;

  typedef struct packed {
    end_e        kind;
    cause_e      cause;
    logic [31:0] pc;
    logic [63:0] address;  // address of the access, in the unit or in host memory, or the reported code
  } outcome_t;

  // End of a task in flight to the queue engine and the NIC.
  typedef struct packed {
    role_e       role;
    logic [15:0] mpq;
    logic        feeds_back;
    hpu_id_t     hpu;
    outcome_t    outcome;
    her_t        her;
  } completion_t;

  // Feedback of a packet (PsPIN III-B1).
  typedef struct packed {
    logic [31:0]          message;
    logic [31:0]          address;
    logic [SizeWidth-1:0] size;
    logic [SizeWidth-1:0] transfer;
    logic [31:0]          user;
    end_e                 kind;
    logic                 last;  // the message number is free
  } feedback_t;

  // Message given up for lack of packets, or because the HPUs are disabled.
  typedef struct packed {
    logic [31:0]             message;
    logic [ContextWidth-1:0] execution_context;
    logic                    is_free;      // its number is free; otherwise the last feedback frees it
    logic                    is_disabled;  // given up because the HPUs are disabled
  } idle_t;

  // Events of the scheduler in a cycle, for counters.
  typedef struct packed {
    logic accepted;  // request accepted
    logic refused;   // request refused for now
    logic sent;      // task sent to a cluster
    logic blocked;   // task blocked, because no cluster has room
    logic skipped;   // packet without a handler
    logic held;      // feedback blocked by the NIC
    logic idle;      // message given up
  } sched_events_t;

  // Events of a cluster in a cycle, for counters.
  typedef struct packed {
    logic [HpuWidth:0] busy;       // HPUs that have a task, or boot
    logic [HpuWidth:0] conflicts;  // HPUs that wait for a bank of their L1
    logic              misses;     // line missing in the instruction cache
  } cluster_events_t;

  // Memory range of a handler.
  typedef struct packed {
    logic [63:0] address;
    logic [63:0] size;
  } host_range_t;

  // Execution context of a message (PsPIN III-A), except for the scratchpads, one in each cluster.
  typedef struct packed {
    logic [7:0]   tenant;
    logic         is_pinned;
    logic [7:0]   pin;          // cluster, if pinned
    logic [63:0]  descriptor;   // address in host memory; 0 for none
    logic [31:0]  idle_cycles;
    logic [31:0]  watchdog_cycles;
    host_range_t  host;
    range_t       handler_memory;
    range_t [2:0] handlers;     // by role_e; address 0 for none
  } execution_context_t;

  // Configuration of all HPUs by the driver on the host; it changes only while they are disabled.
  typedef struct packed {
    logic        enable;        // HPUs run
    logic        drop;          // while they do not: their tasks end, as those of messages that were given up
    logic [31:0] entry;         // start address of an HPU
    logic [31:0] again;         // restart address after a handler failed or was killed
    range_t      static_data;   // static data of the program, accessible to all handlers
    range_t      code;          // code of the program, readable and executable by all handlers
    range_t      handler_data;  // initial handler memory: accessible to the program during its start
  } cfg_t;

  // Windows of an HPU besides scratchpads (PsPIN III-B2), at global addresses. An empty one is unused.
  typedef struct packed {
    range_t own_stack;
    range_t static_data;
    range_t code;            // read-only
    range_t packet;          // packet in L1
    range_t l2_packet;
    range_t handler_memory;
  } windows_t;

  // Kinds of commands (crates/card/pspin-unit/src/command/kinds.rs).
  typedef enum logic [2:0] {
    CommandSend,
    CommandToHost,
    CommandFromHost,
    CommandHostDirect,
    CommandHostDirectRead
  } command_e;

  // Engine of a command, which has separate credits.
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
    range_t                  data;    // range in L1 or L2, at the global address
    logic [63:0]             host;
    logic [31:0]             node;
    logic [31:0]             flow;
    logic [31:0]             user;
    logic                    has_event;
    logic [63:0]             immediate;
    logic [6:0]              immediate_size;
  } command_t;

  // End of a command, in flight to the HPU.
  typedef struct packed {
    hpu_id_t              hpu;
    logic [SlotWidth-1:0] slot;
    logic                 is_refused;  // refused by the host
    logic [63:0]          host;        // refused address
  } command_end_t;

  // Response to a command, for one HPU.
  typedef struct packed {
    hpu_id_t              hpu;
    logic [SlotWidth-1:0] slot;
    logic                 is_refused;
    logic [63:0]          host;       // refused address
    logic [511:0]         data;       // data of a host-direct read
  } response_t;

  // Word request of an HPU to a memory.
  typedef struct packed {
    logic        we;
    atop_e       atop;
    logic [31:0] address;
    logic [3:0]  be;
    logic [31:0] wdata;
    logic        expected_valid;  // for a store-conditional
    logic [31:0] expected;
  } word_request_t;

  // Beat to be written to a wide memory.
  typedef struct packed {
    logic [31:0]          address;  // address of the beat: a multiple of BeatBytes
    logic [BeatBytes-1:0] strobe;
    logic [511:0]         wdata;
  } beat_request_t;

  // Memories of the unit. Each cluster has the L1 of its number; all HPUs see them at the same addresses
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
  localparam logic [31:0] OwnL1Start   = 32'h1B00_0000;  // alias of the L1 of the HPU's own cluster
  localparam logic [31:0] L1Span       = 32'h0040_0000;  // distance of the L1s of consecutive clusters

  // Memory of an address, ignoring its size.
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

  // Cluster of an address in L1: each has 4 MiB of addresses.
  function automatic logic [ClusterWidth-1:0] cluster_of(logic [31:0] address);
    return ClusterWidth'((address - L1Start) >> L1SpanWidth);
  endfunction

  // Next beat of a copy by a cluster's DMA engine. It uses the channels of both memories, and reads a word unless the
  // realigner already has all bytes.
  typedef struct packed {
    logic                    valid;
    logic                    reads;
    logic [31:0]             address;     // read address: a multiple of BeatBytes
    place_e                  from;
    place_e                  to;
    logic [ClusterWidth-1:0] to_cluster;  // cluster of `to`, if in L1
  } dma_beat_t;

  // Notices to the driver on the host (crates/base/abi/src/pspin.rs, Events).
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

  // Number of words of BeatBytes that a range touches, at least one.
  function automatic logic [31:0] beats_of(range_t data);
    return ((32'(data.address[5:0]) + (data.size == '0 ? 32'd0 : data.size - 1'b1)) >> 6) + 1'b1;
  endfunction

  // Rule of a NIC: a 32-bit word of the first 64 bytes of a frame, big-endian and masked, lies in a range.
  typedef struct packed {
    logic [3:0]  word;
    logic [31:0] mask;
    logic [31:0] first;
    logic [31:0] last;
  } nic_rule_t;

  // Combination of the rules of a ruleset before the last one.
  typedef enum logic [1:0] {
    NicUnused,
    NicAll,
    NicAny
  } nic_mode_e;

  // Verdict of a NIC about a packet for the unit.
  typedef struct packed {
    logic [7:0]              ruleset;
    logic                    eom;                // the packet ends its message
    logic [ContextWidth-1:0] execution_context;
    logic [SizeWidth-1:0]    transfer;           // maximum bytes of the packet copied to L1
  } nic_match_t;

  // Access of a NIC's driver to a memory of the unit, up to a beat.
  typedef struct packed {
    logic         is_write;
    logic [31:0]  address;
    logic [6:0]   bytes;     // written ones, from the first on
    logic [511:0] data;
  } nic_window_t;

  // Engine of a command.
  function automatic engine_e engine_of(command_e kind);
    unique case (kind)
      CommandSend:                     return EngineOutbound;
      CommandToHost, CommandFromHost:  return EngineOffCluster;
      default:                         return EngineDirect;
    endcase
  endfunction

endpackage
