# Where HPUs start, and the loop in which they wait for tasks (PsPIN §III-B2). An HPU gets the number of its cluster in a0, its own
# number within the cluster in a1, and an empty stack.
    .option norvc
    .section .text.start, "ax", @progbits
    .globl _start
    .type _start, @function
_start:
    or      t0, a0, a1
    bnez    t0, __rt_again
    # HPU 0 of cluster 0 initialises the program, which reports its handlers to drivers that request this.
    addi    sp, sp, -16
    mv      a0, sp
    addi    a1, sp, 4
    addi    a2, sp, 8
    addi    a3, sp, 12
    call    init_handlers
    addi    sp, sp, 16
    li      a0, 0
    li      a1, 0
    .size _start, . - _start

# An HPU whose handler has failed or was killed starts here again.
    .globl __rt_again
    .type __rt_again, @function
__rt_again:
    # rt_hart_id() of pspin_rt.h
    slli    tp, a0, 5
    or      tp, tp, a1
    # handler_args_t: the task in the registers of the HPU driver, and the numbers of the HPU
    lui     s0, 0x1B205
    addi    sp, sp, -16
    mv      s1, sp
    addi    t0, s0, 8
    sw      t0, 0(s1)
    slli    t1, a0, 3
    add     t1, t1, a1
    sw      t1, 4(s1)
    sw      a0, 8(s1)
    sw      a1, 12(s1)
    j       1f
    # The loop is in one line of the instruction cache.
    .balign 32
1:
    lw      t0, 0(s0)
    nop
    mv      a0, s1
    jalr    t0
    nop
    sw      zero, 0x50(s0)
    j       1b
    .size __rt_again, . - __rt_again
