# Handlers for check_cluster.py. The scratchpad of the cluster begins with a number of tasks and a sum, to which all HPUs add.
    .equ DRIVER, 0x1B205000
    .equ SCRATCHPAD, 0x10003000
    .option norvc
    .text

# Nothing is prepared, but the HPU that starts the program leaves a mark.
    .globl init_handlers
init_handlers:
    lui     t0, %hi(SCRATCHPAD)
    li      t1, 0x600D
    sw      t1, 8(t0)
    ret

    .globl empty
    .balign 32
empty:
    ret

# Adds all words of the packet in L1, and counts the task.
    .globl sum
    .balign 32
sum:
    lui     t0, %hi(DRIVER)
    lw      t1, 0x10(t0)
    lw      t2, 0x14(t0)
    add     t2, t2, t1
    li      t3, 0
1:  bgeu    t1, t2, 2f
    lw      t4, 0(t1)
    add     t3, t3, t4
    addi    t1, t1, 4
    j       1b
2:  lui     t0, %hi(SCRATCHPAD)
    li      t1, 1
    amoadd.w zero, t1, (t0)
    addi    t0, t0, 4
    amoadd.w zero, t3, (t0)
    ret

# Gives a word of handler memory to the host, as a host-direct command, waits until that is done, and prints the word's first byte.
    .globl tell
    .balign 32
tell:
    lui     t0, %hi(DRIVER)
    lw      t1, 0x8(t0)
    lw      t2, 0(t1)
    li      t3, 4
    sw      t3, 0x8C(t0)
    sw      t2, 0x90(t0)
    sw      zero, 0x94(t0)
    li      t3, 4 << 1 | 1
    sw      t3, 0x98(t0)
    sw      t2, 0x9C(t0)
    lw      t3, 0x80(t0)
    sw      t3, 0x84(t0)
    lui     t4, 0x1A104
    sb      t2, 0(t4)
    ret
