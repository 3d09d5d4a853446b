# Short handlers, each for one feature of an HPU or its driver. The bench writes their inputs to PLACE, in the
# scratchpad, and reads their results there.
    .equ PLACE, 0x10008000
    .equ DRIVER, 0x1B205000
    .option norvc
    .section .text.handlers, "axR", @progbits

    .macro HANDLER name
    .globl \name
    .type \name, @function
    .balign 4
\name:
    .endm

# An access of this kind to the address at PLACE + 0x100, with the value at PLACE + 0x104.
    .macro PROBE name, instruction:vararg
HANDLER probe_\name
    lui     t0, %hi(PLACE)
    lw      t1, 0x100(t0)
    lw      t2, 0x104(t0)
    .globl probe_\name\()_at
probe_\name\()_at:
    \instruction
    sw      t2, 0x108(t0)
    ret
    .endm

    PROBE lb, lb t2, 0(t1)
    PROBE lh, lh t2, 0(t1)
    PROBE lw, lw t2, 0(t1)
    PROBE sb, sb t2, 0(t1)
    PROBE sh, sh t2, 0(t1)
    PROBE sw, sw t2, 0(t1)
    PROBE lr, lr.w t2, (t1)
    PROBE amo, amoadd.w t2, t2, (t1)

# Failures whose address is that of the handler.
HANDLER fail_load
    lw      t0, 4(zero)
    ret
HANDLER fail_illegal
    .word   0xFFFFFFFF
HANDLER fail_zero
    .2byte  0
    .2byte  0
HANDLER fail_breakpoint
    ebreak
HANDLER fail_call
    ecall
    ret
HANDLER fail_mret
    mret
HANDLER fail_wfi
    wfi
    ret
HANDLER fail_uret
    .word   0x00200073
HANDLER fail_mtvec
    csrw    mtvec, zero
    ret
HANDLER fail_mstatus
    csrr    t1, mstatus
    ret
HANDLER fail_cycle
    csrw    cycle, zero
    ret
# Reading the time is no failure.
HANDLER reads_cycle
    rdcycle t1
    lui     t0, %hi(PLACE)
    rdcycle t2
    sw      t2, 0x1F0(t0)
    sub     t1, t2, t1
    sw      t1, 0x108(t0)
    rdinstret t2
    sw      t2, 0x10C(t0)
    ret
HANDLER fail_fetch
    lui     t1, 0x1E000
    jr      t1
# The boot ROM is at this address, and not for handlers.
HANDLER fail_rom
    lui     t1, 0x1A000
    jr      t1

HANDLER forever
    j       forever
# A load of the function pointer in the middle of a handler waits for the next task.
HANDLER waits_function
    lui     t0, %hi(DRIVER)
    lw      t1, 0(t0)
    ret
# A handler that rings the doorbell itself, and then looks at its packet, whose memory it has given away.
HANDLER rings_twice
    lui     t0, %hi(DRIVER)
    lui     t1, 0x10004
    sw      zero, 0x50(t0)
    .globl rings_twice_at
rings_twice_at:
    lw      t2, 0(t1)
    ret

# Issues the command whose words are at PLACE + 0x200; PLACE + 0x104 has the number of repetitions. Their numbers go
# to PLACE + 0x110 and behind.
HANDLER commands
    lui     t0, %hi(PLACE)
    lui     t3, %hi(DRIVER)
    addi    t4, t0, 0x200
    addi    t5, t3, 0x8C
    addi    t6, t0, 0x220
1:  lw      t1, 0(t4)
    addi    t4, t4, 4
    sw      t1, 0(t5)
    addi    t5, t5, 4
    bne     t4, t6, 1b
    lw      t2, 0x104(t0)
    addi    t4, t0, 0x110
2:  
    .globl commands_at
commands_at:
    lw      t1, 0x80(t3)
    sw      t1, 0(t4)
    addi    t4, t4, 4
    addi    t2, t2, -1
    bnez    t2, 2b
    ret
# The same, and then waits for the first.
HANDLER commands_wait
    mv      a5, ra
    call    commands
    lw      t1, 0x110(t0)
    sw      t1, 0x84(t3)
    sw      t1, 0x10C(t0)
    jr      a5
# Whether the command at PLACE + 0x100 is done.
HANDLER test_command
    lui     t0, %hi(PLACE)
    lui     t3, %hi(DRIVER)
    lw      t1, 0x100(t0)
    sw      t1, 0x88(t3)
    lw      t1, 0x88(t3)
    sw      t1, 0x108(t0)
    ret

# Launches the transfer whose words are at PLACE + 0x200; PLACE + 0x104 has the number of repetitions. Stores its
# number, and that of landed transfers.
HANDLER transfers
    lui     t0, %hi(PLACE)
    lui     t3, %hi(DRIVER)
    lw      t1, 0x200(t0)
    lw      t2, 0x204(t0)
    lw      t4, 0x208(t0)
    sw      t1, 0x100(t3)
    sw      t2, 0x108(t3)
    sw      t4, 0x110(t3)
    lw      t2, 0x104(t0)
1:  lw      t1, 0x118(t3)
    addi    t2, t2, -1
    bnez    t2, 1b
    lw      t2, 0x120(t3)
    sw      t1, 0x108(t0)
    sw      t2, 0x10C(t0)
    ret

HANDLER reports
    lui     t3, %hi(DRIVER)
    li      t1, 77
    sw      t1, 0x54(t3)
    li      t1, 78
    sw      t1, 0x54(t3)
    ret
HANDLER prints
    lui     t3, 0x1A104
    li      t1, 'H'
    sb      t1, 0(t3)
    li      t1, 'i'
    sw      t1, 0(t3)
    ret
HANDLER terminates
    lui     t3, 0x1B200
    sw      zero, 0(t3)
    ret
# Copies the 19 words behind the function pointer to PLACE + 0x200; and a word of them that is not aligned.
HANDLER words
    lui     t0, %hi(PLACE)
    lui     t3, %hi(DRIVER)
    addi    t4, t0, 0x200
    addi    t5, t3, 4
    addi    t6, t3, 0x50
1:  lw      t1, 0(t5)
    addi    t5, t5, 4
    sw      t1, 0(t4)
    addi    t4, t4, 4
    bne     t5, t6, 1b
    lw      t1, 0xA(t3)
    sw      t1, 0(t4)
    lbu     t1, 0x13(t3)
    sw      t1, 4(t4)
    ret
