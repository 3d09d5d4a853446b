/* The order in which messages of one process are matched by another, also when packets are lost (spinrun --drop).
 *
 *   message_order COUNT   every other rank puts COUNT messages of one to four packets to rank 0 and waits only at the end; rank 0 has
 *                         an entry for each, in a row
 *
 * Rank 0 prints, for each source, how many messages came, how many of them as a whole, and the first that was matched behind a later
 * one. */
#include <spin.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != PTL_OK) {                                                                                           \
            printf("%d: %s returns %d\n", spin_rank(), #call, rc_);                                                    \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { WORDS = 2048, PT = 1 };

/* The number of words of a message: one to four packets of 4 KiB. */
static unsigned length(unsigned number) { return 1 + number * 7919 % (WORDS - 1); }

static void receive(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_handle_ct_t ct, unsigned sources, unsigned count) {
    uint64_t (*messages)[WORDS] = calloc(sources * count, sizeof *messages);
    for (unsigned i = 0; i < sources * count; i++) {
        ptl_handle_me_t handle;
        ptl_me_t entry = {.start = messages[i],
                          .length = sizeof *messages,
                          .ct_handle = ct,
                          .uid = PTL_UID_ANY,
                          .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_COMM,
                          .match_id.rank = 1 + i / count,
                          .hpu_memory = PTL_INVALID_HANDLE};
        CHECK(PtlMEAppend(ni, pt, &entry, PTL_PRIORITY_LIST, NULL, &handle));
    }
    CHECK(spin_barrier());
    CHECK(spin_barrier());
    for (unsigned source = 0; source < sources; source++) {
        unsigned came = 0, whole = 0, latest = 0, behind = 0;
        for (unsigned i = 0; i < count; i++) {
            const uint64_t *message = messages[source * count + i];
            unsigned number = message[0];
            if (number == 0)
                continue;
            came++;
            if (number < latest && !behind)
                behind = number;
            latest = number > latest ? number : latest;
            unsigned word = 1;
            while (word < length(number) && message[word] == number * 31 + word)
                word++;
            whole += word == length(number);
        }
        printf("source %u: %u messages, %u whole, first out of order %u\n", source + 1, came, whole, behind);
    }
    free(messages);
}

static void send(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_handle_ct_t ct, unsigned count) {
    uint64_t (*messages)[WORDS] = calloc(count, sizeof *messages);
    ptl_handle_md_t handle;
    ptl_md_t md = {messages, count * sizeof *messages, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, ct};
    ptl_ct_event_t event;
    for (unsigned i = 0; i < count; i++) {
        messages[i][0] = i + 1;
        for (unsigned word = 1; word < length(i + 1); word++)
            messages[i][word] = (i + 1) * 31 + word;
    }
    CHECK(PtlMDBind(ni, &md, &handle));
    CHECK(spin_barrier());
    for (unsigned i = 0; i < count; i++)
        CHECK(PtlPut(handle, i * sizeof *messages, length(i + 1) * sizeof(uint64_t), PTL_CT_ACK_REQ,
                     (ptl_process_t){.rank = 0}, pt, 0, 0, NULL, 0));
    do
        CHECK(PtlCTGet(ct, &event));
    while (event.success + event.failure < count && (spin_idle(), 1));
    CHECK(spin_barrier());
    free(messages);
}

int main(int argc, char **argv) {
    unsigned count = argc > 1 ? strtoul(argv[1], NULL, 10) : 10;
    ptl_handle_ni_t ni;
    ptl_pt_index_t pt;
    ptl_handle_ct_t ct;
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    CHECK(spin_set_map(ni));
    CHECK(PtlCTAlloc(ni, &ct));
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PT, &pt));
    if (spin_rank() == 0)
        receive(ni, pt, ct, spin_size() - 1, count);
    else
        send(ni, pt, ct, count);
    return 0;
}
