/* SPDX-License-Identifier: Apache-2.0 */
/* A destination whose CPU streams through memory while a message arrives (sPIN §4.3).
 *
 *   --mode put        rank 1's card stores the message, and its program waits for it
 *   --mode cpu        as put, and the CPU of rank 1 multiplies the numbers of the message onto an array (§4.4.2)
 *   --mode handler    payload handlers on rank 1's card multiply
 *   --bytes N         size of the message, a multiple of 16
 *   --streams N,N,…   numbers of threads of rank 1 that copy blocks of memory all the time
 *
 * Prints one JSON object a line for each number: {"mode", "streams", "time_ps", "idle_ps", "data_ok"}. The time
 * is from rank 0's call of PtlPut to rank 1's program seeing the result in its memory; `idle_ps` is the same without
 * streams. */
#include "../../common/common.h"
#include <handlers/accumulate/accumulate.h>
#include <pthread.h>

enum { PT = 3, BITS = 20 };                 /* portal table index and match bits */
enum { WARM_UP = 2, ROUNDS = WARM_UP + 1 }; /* branch predictors of the HPUs settle; the last round counts */
enum { MAX_STREAMS = 7 };                   /* with the program's own thread all cores of the host (§4.2) */
enum { BLOCK = 1 << 20 };                   /* bytes of a copy: 84 us on an idle machine */

static const char usage[] = "memory-contention --mode put|cpu|handler --bytes BYTES --streams NUMBER[,NUMBER...]";
enum mode { PUT, CPU, HANDLER, MODES };
static const char *const modes[MODES] = {"put", "cpu", "handler"};

static enum mode mode;
static size_t bytes;
static volatile bool streaming;
static bool copied = true; /* whether every copy had the right data */

/* Copies a block back and forth until the message has been used. */
static void *stream(void *blocks) {
    unsigned char *from = blocks, *to = from + BLOCK;
    while (streaming) {
        memcpy(to, from, BLOCK);
        spin_host_copy(BLOCK);
        unsigned char *other = from;
        from = to;
        to = other;
    }
    return NULL;
}

/* The test data are small whole numbers, so that sums and products are exact in any order and rounding. */
static int number(size_t i, unsigned seed) { return pattern(i, seed) - 300; }

static void fill(double *array, unsigned seed) {
    for (size_t i = 0; i < bytes / 8; i++)
        array[i] = number(i, seed);
}

/* Returns whether rank 1's array is right after the round's message. */
static bool is_right(const double *numbers, unsigned onto, unsigned by) {
    for (size_t i = 0; i < bytes / 8; i += 2) {
        long a = number(i, onto), b = number(i + 1, onto), c = number(i, by), d = number(i + 1, by);
        double real = mode == PUT ? c : a * c - b * d, imaginary = mode == PUT ? d : a * d + b * c;
        if (numbers[i] != real || numbers[i + 1] != imaginary)
            return false;
    }
    return true;
}

/* Sends the messages. */
static void origin(double *numbers) {
    ptl_handle_md_t md = bind_memory(numbers, bytes, 0, PTL_CT_NONE);
    for (unsigned round = 0; round < ROUNDS; round++) {
        fill(numbers, 2 * round + 1);
        CHECK(spin_barrier());
        CHECK(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 1}, PT, BITS, 0, NULL, 0));
        CHECK(spin_barrier()); /* the message has been read and used */
    }
    CHECK(PtlMDRelease(md));
}

/* Receives the messages beside some streams. Returns the time of the last one. */
static uint64_t destination(double *numbers, double *temporary, size_t streams) {
    struct accumulate state = {.offset = 0};
    ptl_me_t me = {.start = mode == CPU ? temporary : numbers,
                   .length = bytes,
                   .uid = PTL_UID_ANY,
                   .match_id = {.rank = PTL_RANK_ANY},
                   .match_bits = BITS,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                   .hpu_memory = PTL_INVALID_HANDLE};
    ptl_handle_me_t entry;
    pthread_t threads[MAX_STREAMS];
    unsigned char *blocks[MAX_STREAMS];
    uint64_t time_ps = 0;
    if (mode == HANDLER) {
        me.payload_handler = accumulate_payload;
        me.hpu_initial_state = &state;
        me.hpu_initial_state_length = sizeof state;
        CHECK(PtlHPUAllocMem(sizeof state, ni, &me.hpu_memory));
    }
    CHECK(PtlCTAlloc(ni, &me.ct_handle));
    CHECK(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &entry));
    streaming = true;
    for (size_t i = 0; i < streams; i++) {
        blocks[i] = allocate(2 * BLOCK);
        for (size_t at = 0; at < BLOCK; at++)
            blocks[i][at] = pattern(at, i);
        if (pthread_create(&threads[i], NULL, stream, blocks[i]) != 0)
            fail("no thread");
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        fill(numbers, 2 * round);
        CHECK(spin_barrier()); /* both leave it at the same time, when rank 0 calls PtlPut */
        uint64_t start_ps = spin_time_ps();
        await_count(me.ct_handle, round + 1);
        if (mode == CPU) {
            accumulate_multiply(numbers, temporary, bytes / 16);
            spin_host_memory(2 * bytes, bytes); /* see README.md */
        }
        time_ps = spin_time_ps() - start_ps;
        copied &= is_right(numbers, 2 * round, 2 * round + 1);
        CHECK(spin_barrier());
    }
    streaming = false;
    for (size_t i = 0; i < streams; i++) {
        CHECK(pthread_join(threads[i], NULL));
        for (size_t at = 0; at < BLOCK; at++)
            copied &= blocks[i][at] == pattern(at, i) && blocks[i][at + BLOCK] == pattern(at, i);
        free(blocks[i]);
    }
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlCTFree(me.ct_handle));
    if (mode == HANDLER)
        CHECK(PtlHPUFreeMem(&me.hpu_memory));
    return time_ps;
}

int main(int argc, char **argv) {
    mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    const char *sizes = option(argc, argv, "--bytes", usage), *numbers = option(argc, argv, "--streams", usage);
    size_t streams;
    if (spin_size() != 2)
        fail("needs 2 ranks");
    if (!next_number(&sizes, &bytes) || bytes == 0 || bytes % 16 != 0)
        fail("--bytes: %s", usage);
    double *array = allocate(bytes), *temporary = allocate(bytes);
    start(PT, NULL);
    while (next_number(&numbers, &streams)) {
        if (streams > MAX_STREAMS)
            fail("%zu streams: at most %d", streams, MAX_STREAMS);
        if (spin_rank() == 0) {
            origin(array);
            origin(array);
            continue;
        }
        uint64_t idle_ps = destination(array, temporary, 0), time_ps = destination(array, temporary, streams);
        printf("{\"mode\":\"%s\",\"streams\":%zu,\"time_ps\":%llu,\"idle_ps\":%llu,\"data_ok\":%s}\n", modes[mode],
               streams, (unsigned long long)time_ps, (unsigned long long)idle_ps, verdict(copied));
        fflush(stdout);
    }
    finish();
    return exit_status;
}
