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

endpackage
