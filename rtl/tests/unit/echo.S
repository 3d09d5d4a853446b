# A handler that answers pings and UDP packets: the packet goes back to where it came from. Sums of swapped words stay what they are.
    .equ DRIVER, 0x1B205000
    .option norvc
    .text

    .macro swap one, other
    lhu     t2, \one(t1)
    lhu     t3, \other(t1)
    sh      t3, \one(t1)
    sh      t2, \other(t1)
    .endm

    .globl init_handlers
init_handlers:
    ret

# A header or completion handler that has nothing to do.
    .globl nothing
    .balign 32
nothing:
    ret

    .globl echo
    .balign 32
echo:
    lui     t0, %hi(DRIVER)
    lw      t1, 0x10(t0)        # the packet in L1
    lw      t4, 0x14(t0)        # and its size
    swap    0, 6                # addresses of Ethernet
    swap    2, 8
    swap    4, 10
    swap    26, 30              # addresses of IP
    swap    28, 32
    lbu     t2, 23(t1)          # protocol
    li      t3, 17
    bne     t2, t3, 1f
    swap    34, 36              # ports of UDP
    j       2f
1:  sb      zero, 34(t1)        # the type was echo request, 8, and is echo reply, 0; the checksum grows by what is less
    lbu     t2, 36(t1)
    lbu     t3, 37(t1)
    slli    t2, t2, 8
    or      t2, t2, t3
    li      t3, 0x800
    add     t2, t2, t3
    srli    t3, t2, 16
    add     t2, t2, t3
    sb      t2, 37(t1)
    srli    t2, t2, 8
    sb      t2, 36(t1)
2:  li      t2, 2               # send
    sw      t2, 0x8C(t0)
    sw      zero, 0x90(t0)      # node
    sw      zero, 0x94(t0)      # flow: a raw packet
    sw      t1, 0x98(t0)        # data
    sw      zero, 0x9C(t0)
    sw      t4, 0xA0(t0)        # size
    sw      zero, 0xA4(t0)      # user
    lw      t2, 0x80(t0)        # issue
    ret
