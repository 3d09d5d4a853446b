/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of sPIN App. B in a program with <spin/paper.h>: structure tags, ptl_handler_data, HANDLER_IOVEC,
 * ptl_type_t, arrays of PTL_NUM_HPUS, a user header in the payload, blocks of HPU memory, and fetching atomics. */
#include <spin/paper.h>

typedef struct {
    uint32_t key;
    uint32_t scale;
} ptl_user_header_t;

#include "job.h"

enum { BITS = 5, COUNTERS = 6, GATHER = 7, ROOM = 2048 };
enum { FETCHED = 0, SWAPPED = 1, UNCHANGED = 2, EXCHANGED = 3, BLOCKS = 4, RESULTS = 5 };

static uint32_t packets[PTL_NUM_HPUS];

struct tally {
    ptl_process_t source;
    uint32_t scale;
    uint32_t packets;
};

__handler int header(const struct ptl_header_t h, void *state) {
    struct tally *t = state;
    t->source = h.source_id;
    t->scale = h.user_hdr.scale;
    if (h.user_hdr.key != 77 || h.target_id + 1 != h.source_id)
        return FAIL;
    return PROCESS_DATA;
}

/* Multiplies the numbers and adds them to host memory by the atomic DMA. */
__handler int payload(const struct ptl_payload_t p, void *state) {
    const struct tally *t = state;
    uint32_t *scaled = malloc(p.length);
    if (scaled == NULL)
        return FAIL;
    packets[PTL_MY_HPU]++;
    for (uint32_t i = 0; i < p.length / 4; i++)
        scaled[i] = ((const uint32_t *)p.base)[i] * t->scale;
    ptl_type_t type = PTL_UINT32_T;
    for (uint32_t i = 0; i < p.length / 4; i++) {
        ptl_size_t before;
        PtlHandlerDMAFetchAddB(p.offset + 4 * i, scaled[i], &before, type, PTL_ME_HOST_MEM);
    }
    free(scaled);
    return SUCCESS;
}

/* Writes the number of packets into the second buffer, whose parts are an iovec, and tests atomics at the sender. */
__handler int completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    struct tally *t = state;
    uint64_t result[RESULTS] = {0}, five = 5, nine = 9, before = 0;
    uint32_t all = 0;
    (void)dropped_bytes, (void)flow_control_triggered;
    for (uint32_t i = 0; i < PTL_NUM_HPUS; i++)
        all += packets[i];
    PtlHandlerDMAToHostB(&all, 8, sizeof all, PTL_HANDLER_HOST_MEM);

    PtlHandlerFetchAtomicFromDevice(&five, &result[FETCHED], 8, 0, t->source, COUNTERS, 0, NULL, 0, PTL_SUM,
                                    PTL_UINT64_T);
    PtlHandlerSwapFromDevice(&nine, &result[SWAPPED], NULL, 8, 0, t->source, COUNTERS, 0, NULL, 0, PTL_SWAP,
                             PTL_UINT64_T);
    before = 8;
    PtlHandlerSwapFromDevice(&five, &result[UNCHANGED], &before, 8, 0, t->source, COUNTERS, 0, NULL, 0, PTL_CSWAP,
                             PTL_UINT64_T);
    before = 9;
    PtlHandlerSwapFromDevice(&five, &result[EXCHANGED], &before, 8, 0, t->source, COUNTERS, 0, NULL, 0, PTL_CSWAP,
                             PTL_UINT64_T);
    if (PtlHandlerFetchAtomicFromDevice(&five, &before, 8, 0, t->source, COUNTERS, 0, NULL, 0, PTL_CSWAP,
                                        PTL_UINT64_T) != SPIN_ERR_INVALID)
        return FAIL;

    /* Blocks do not overlap, may be longer than one, and are free again afterwards. */
    uint8_t *blocks[8];
    for (int round = 0; round < 8; round++) {
        for (uint32_t i = 0; i < 8; i++) {
            blocks[i] = malloc(i == 0 ? 10000 : 1);
            if (blocks[i] == NULL)
                return FAIL;
            for (uint32_t j = 0; j < (i == 0 ? 10000 : 4096); j += 1000)
                blocks[i][j] = (uint8_t)(i + 1);
        }
        for (uint32_t i = 0; i < 8; i++) {
            result[BLOCKS] += blocks[i][i == 0 ? 9000 : 4000] == i + 1 && blocks[i][0] == i + 1;
            free(blocks[i]);
        }
    }
    if (malloc(1 << 20) != NULL)
        return FAIL;
    free(NULL);
    PtlHandlerPutFromDevice(result, sizeof result, 0, 0, t->source, GATHER, 0, NULL, 0);
    return SUCCESS;
}

static uint32_t memory[ROOM], expected[ROOM], numbers[2 + ROOM];
static uint64_t counter = 100, results[RESULTS];

static void receiver(void) {
    uint32_t one[2] = {0}, two[2] = {0};
    ptl_iovec_t parts[] = {{one, sizeof one}, {two, sizeof two}};
    struct tally state = {0};
    ptl_handler_t first = header;
    struct ptl_handler_data data = {.header_handler = first,
                                    .payload_handler = payload,
                                    .completion_handler = completion,
                                    .hpu_initial_state = &state,
                                    .hpu_initial_state_length = sizeof state,
                                    .handler_host_mem_start = parts,
                                    .handler_host_mem_length = 2,
                                    .user_hdr_size = sizeof(ptl_user_header_t)};
    ptl_me_t me = entry(BITS, memory, sizeof memory);
    me.options |= HANDLER_IOVEC;
    REQUIRE(PtlHPUAllocMem(sizeof state, ni, &data.hpu_memory) == PTL_OK);
    me.ptl_handler_data = &data;
    append(me, NULL, 0);
    spin_barrier();
    REQUIRE(await(BITS) == sizeof memory); /* the length of the entry */
    for (uint32_t i = 0; i < ROOM; i++)
        expected[i] = 3 * (i + 1);
    REQUIRE(memcmp(memory, expected, sizeof memory) == 0);
    REQUIRE(one[0] == 0 && two[0] == 3); /* 8 KiB and the user header */
}

static void sender(void) {
    ptl_process_t self;
    REQUIRE(PtlGetId(ni, &self) == PTL_OK && self == 1);
    ptl_me_t me = entry(COUNTERS, &counter, sizeof counter);
    me.options |= PTL_ME_EVENT_COMM_DISABLE;
    append(me, NULL, 0);
    append(entry(GATHER, results, sizeof results), NULL, 0);
    ptl_user_header_t user = {.key = 77, .scale = 3};
    memcpy(numbers, &user, sizeof user);
    for (uint32_t i = 0; i < ROOM; i++)
        numbers[2 + i] = i + 1;
    spin_barrier();
    send_to(self - 1, BITS, numbers, sizeof numbers, 0);
    REQUIRE(await(GATHER) == sizeof results);
    REQUIRE(results[FETCHED] == 100 && results[SWAPPED] == 105 && results[UNCHANGED] == 9 && results[EXCHANGED] == 9);
    REQUIRE(counter == 5);
    REQUIRE(results[BLOCKS] == 64);
}

int main(void) {
    begin();
    if (spin_rank() == 0)
        receiver();
    else
        sender();
    return end();
}
