/* Remote accumulate (sPIN §4.4.2, App. C.3.2): rank 0 sends an array of double complex numbers, rank 1 multiplies it
 * onto its own.
 *
 *   --mode cpu        the card stores the array in a temporary buffer, rank 1's CPU multiplies
 *   --mode handler    payload handlers on rank 1's card multiply
 *   --sizes N,N,…     message sizes in bytes, multiples of 16
 *
 * Prints one JSON object a line for each size: {"mode", "bytes", "time_ps", "data_ok"}; the time is from rank 0's call
 * of PtlPut to rank 1's program seeing the result in its memory. */
#include "../common/common.h"
#include <handlers/accumulate/accumulate.h>

enum { PT = 3, BITS = 20 };                 /* portal table index and match bits */
enum { WARM_UP = 2, ROUNDS = WARM_UP + 1 }; /* branch predictors of the HPUs settle; the last round counts */
enum { MAX_BYTES = 1 << 20, MAX_DOUBLES = MAX_BYTES / 8 };

static const char usage[] = "accumulate --mode cpu|handler --sizes BYTES[,BYTES...]";
enum mode { CPU, HANDLER };
static const char *const modes[] = {"cpu", "handler"};

/* The test data are small whole numbers, so that sums and products are exact in any order and rounding. */
static int number(size_t i, unsigned seed) { return pattern(i, seed) - 300; }

static void fill(double *array, size_t count, unsigned seed) {
    for (size_t i = 0; i < count; i++)
        array[i] = number(i, seed);
}

/* Whether `numbers` has the products of the first `count` doubles of two seeds, followed by the first seed's data. */
static bool multiplied(const double *numbers, size_t count, unsigned onto, unsigned by) {
    for (size_t i = 0; i < count; i += 2) {
        long a = number(i, onto), b = number(i + 1, onto), c = number(i, by), d = number(i + 1, by);
        if (numbers[i] != a * c - b * d || numbers[i + 1] != a * d + b * c)
            return false;
    }
    for (size_t i = count; i < MAX_DOUBLES; i++)
        if (numbers[i] != number(i, onto))
            return false;
    return true;
}

static void origin(double *numbers, size_t bytes) {
    ptl_handle_md_t md = bind_memory(numbers, MAX_BYTES, 0, PTL_CT_NONE);
    for (unsigned round = 0; round < ROUNDS; round++) {
        fill(numbers, bytes / 8, 2 * round + 1);
        CHECK(spin_barrier());
        CHECK(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 1}, PT, BITS, 0, NULL, 0));
        CHECK(spin_barrier()); /* the message has been read and used */
    }
    CHECK(PtlMDRelease(md));
}

static void destination(enum mode mode, double *numbers, double *temporary, size_t bytes) {
    struct accumulate state = {.offset = 0};
    ptl_ct_event_t counted;
    ptl_handle_me_t entry;
    ptl_me_t me = {.start = mode == CPU ? temporary : numbers,
                   .length = MAX_BYTES,
                   .uid = PTL_UID_ANY,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = BITS,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                   .hpu_memory = PTL_INVALID_HANDLE};
    uint64_t time_ps = 0;
    bool ok = true;
    CHECK(PtlCTAlloc(ni, &me.ct_handle));
    if (mode == HANDLER) {
        CHECK(PtlHPUAllocMem(sizeof state, ni, &me.hpu_memory));
        me.payload_handler = accumulate_payload;
        me.hpu_initial_state = &state;
        me.hpu_initial_state_length = sizeof state;
    }
    CHECK(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &entry));
    for (unsigned round = 0; round < ROUNDS; round++) {
        fill(numbers, MAX_DOUBLES, 2 * round);
        CHECK(spin_barrier()); /* both leave it at the same time, when rank 0 calls PtlPut */
        uint64_t start_ps = spin_time_ps();
        CHECK(PtlCTWait(me.ct_handle, round + 1, &counted));
        if (mode == CPU) {
            accumulate_multiply(numbers, temporary, bytes / 16);
            spin_host_memory(2 * bytes, bytes); /* README.md says what this stands for */
        }
        time_ps = spin_time_ps() - start_ps;
        ok &= counted.failure == 0 && multiplied(numbers, bytes / 8, 2 * round, 2 * round + 1);
        CHECK(spin_barrier());
    }
    printf("{\"mode\":\"%s\",\"bytes\":%zu,\"time_ps\":%llu,\"data_ok\":%s}\n", modes[mode], bytes,
           (unsigned long long)time_ps, ok ? "true" : "false");
    fflush(stdout);
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlCTFree(me.ct_handle));
    if (mode == HANDLER)
        CHECK(PtlHPUFreeMem(&me.hpu_memory));
}

int main(int argc, char **argv) {
    enum mode mode = choice(option(argc, argv, "--mode", usage), modes, 2, usage);
    const char *sizes = option(argc, argv, "--sizes", usage);
    double *numbers = allocate(MAX_BYTES), *temporary = allocate(MAX_BYTES);
    size_t bytes;
    if (spin_size() != 2)
        fail("needs 2 ranks");
    start(PT, NULL);
    while (next_number(&sizes, &bytes)) {
        if (bytes == 0 || bytes % 16 != 0 || bytes > MAX_BYTES)
            fail("%zu bytes: %s", bytes, usage);
        if (spin_rank() == 0)
            origin(numbers, bytes);
        else
            destination(mode, numbers, temporary, bytes);
    }
    finish();
    return 0;
}
