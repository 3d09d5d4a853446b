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

endpackage
