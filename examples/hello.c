/* The first handler: each rank greets the next one, whose card changes the text to capitals as it arrives.
 * spincc examples/hello.c -o hello && spinrun -n 4 ./hello */
#include <spin.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                                    \
    ((call) == PTL_OK ? (void)0 : (fprintf(stderr, "rank %d: %s failed\n", spin_rank(), #call), exit(1)))

/* Runs on the card, for every packet of a message. Only handlers write to host memory. */
__handler int capitals(const ptl_payload_t p, void *state) {
    (void)state;
    for (uint32_t i = 0; i < p.length; i++)
        if (p.base[i] >= 'a' && p.base[i] <= 'z')
            p.base[i] -= 'a' - 'A';
    return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

int main(void) {
    char greeting[64], received[64];
    ptl_handle_ni_t ni;
    ptl_pt_index_t pt;

    /* The card; ranks as addresses; portal table entry 0, to which all messages go. */
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    CHECK(spin_set_map(ni));
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt));

    /* A match entry: conditions on messages, their memory, and their handlers. */
    ptl_me_t me = {.start = received,
                   .length = sizeof received,
                   .uid = PTL_UID_ANY,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = 7,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                   .hpu_memory = PTL_INVALID_HANDLE,
                   .payload_handler = capitals};
    ptl_handle_me_t entry;
    CHECK(PtlCTAlloc(ni, &me.ct_handle)); /* counts the messages that have been handled */
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &entry));

    /* Memory to send from. */
    const int length = snprintf(greeting, sizeof greeting, "hello from rank %d", spin_rank()) + 1;
    ptl_md_t md = {.start = greeting, .length = sizeof greeting, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    ptl_handle_md_t memory;
    CHECK(PtlMDBind(ni, &md, &memory));

    CHECK(spin_barrier()); /* now all ranks have attached their handlers */
    const ptl_process_t next = {.rank = (ptl_rank_t)((spin_rank() + 1) % spin_size())};
    CHECK(PtlPut(memory, 0, (ptl_size_t)length, PTL_NO_ACK_REQ, next, pt, 7, 0, NULL, 0));

    ptl_ct_event_t messages;
    CHECK(PtlCTWait(me.ct_handle, 1, &messages)); /* or until one has failed */
    if (messages.failure != 0)
        return 1;
    printf("rank %d: %s\n", spin_rank(), received);
    CHECK(spin_barrier());
    PtlFini();
    return 0;
}
