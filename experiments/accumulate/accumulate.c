/* Remote accumulate (sPIN §4.4.2, App. C.3.2): rank 0 sends an array of double complex numbers, rank 1 multiplies it
 * onto its own.
 *
 *   --mode cpu           the card stores the array in a temporary buffer, rank 1's CPU multiplies
 *   --mode handler       payload handlers on rank 1's card multiply
 *   --mode cpu-pong      as cpu, and the CPU sends the product back to rank 0
 *   --mode handler-pong  as handler, and the handlers send the product back, packet by packet: the listing's `pong`
 *   --sizes N,N,…        message sizes in bytes, multiples of 16
 *   --piece N            with a CPU: rank 0 sends messages of at most N bytes, a multiple of 16, so that rank 1
 *                        multiplies one while the next arrives
 *
 * Prints one JSON object a line for each size: {"mode", "bytes", "time_ps", "data_ok"}. The time is from rank 0's call
 * of PtlPut to rank 1's program seeing the result in its memory; with `pong`, to rank 0's program seeing it in its. */
#include "../common/common.h"
#include <handlers/accumulate/accumulate.h>

enum { PT = 3, BITS = 20, PONG = 10 };      /* portal table index and match bits */
enum { WARM_UP = 2, ROUNDS = WARM_UP + 1 }; /* branch predictors of the HPUs settle; the last round counts */
enum { MAX_BYTES = 1 << 20, MAX_DOUBLES = MAX_BYTES / 8 };

static const char usage[] =
    "accumulate --mode cpu|handler|cpu-pong|handler-pong --sizes BYTES[,BYTES...] [--piece BYTES]";
enum mode { CPU, HANDLER, CPU_PONG, HANDLER_PONG, MODES };
static const char *const modes[MODES] = {"cpu", "handler", "cpu-pong", "handler-pong"};

static enum mode mode;
static bool handlers, pong;
static size_t piece = MAX_BYTES; /* bytes of a message */

/* ---- The listing's handlers that also answer (App. C.3.2) --------------------------------------------------------
 * The listing sends every packet's product to offset 0; these send it to its place. The product is computed as in the
 * library: the listing takes the imaginary part from the real part that it has just overwritten, and subtracts. */

struct pong {
    ptl_process_t source;
};

__handler int pong_header(const ptl_header_t h, void *state) {
    struct pong *i = state;
    i->source = h.source_id;
    return PROCESS_DATA;
}

__handler int pong_payload(const ptl_payload_t p, void *state) {
    const struct pong *i = state;
    double buf[ACCUMULATE_CHUNK / sizeof(double)];
    if (p.length > sizeof buf || PtlHandlerDMAFromHostB(p.offset, buf, p.length, PTL_ME_HOST_MEM))
        return FAIL;
    accumulate_multiply(buf, (const double *)p.base, p.length / (2 * sizeof(double)));
    if (PtlHandlerDMAToHostB(buf, p.offset, p.length, PTL_ME_HOST_MEM))
        return FAIL;
    return PtlHandlerPutFromDevice(buf, p.length, 0, PTL_NO_ACK_REQ, i->source, PONG, p.offset, NULL, 0) ? FAIL
                                                                                                         : SUCCESS;
}

/* ---- On the host ------------------------------------------------------------------------------------------------ */

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

/* Number of messages that carry `bytes`. */
static size_t messages(size_t bytes) { return (bytes + piece - 1) / piece; }

/* Puts `bytes` of `md` to the same place of the other rank's entry with these match bits. */
static void put(ptl_handle_md_t md, size_t at, size_t bytes, int peer, ptl_match_bits_t bits) {
    CHECK(PtlPut(md, at, bytes, PTL_NO_ACK_REQ, (ptl_process_t){.rank = peer}, PT, bits, at, NULL, 0));
}

static void print_time(size_t bytes, uint64_t time_ps, bool ok) {
    printf("{\"mode\":\"%s\",\"bytes\":%zu,\"time_ps\":%llu,\"data_ok\":%s}\n", modes[mode], bytes,
           (unsigned long long)time_ps, ok ? "true" : "false");
    fflush(stdout);
}

/* Appends an entry over `memory`; its counter counts messages, or bytes. */
static ptl_handle_me_t append(double *memory, ptl_match_bits_t bits, ptl_me_t *me, unsigned options) {
    ptl_handle_me_t entry;
    me->start = memory;
    me->length = MAX_BYTES;
    me->uid = PTL_UID_ANY;
    me->match_id.rank = PTL_RANK_ANY;
    me->match_bits = bits;
    me->options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | options;
    CHECK(PtlCTAlloc(ni, &me->ct_handle));
    CHECK(PtlMEAppend(ni, PT, me, PTL_PRIORITY_LIST, NULL, &entry));
    return entry;
}

/* Sends the array; with `pong` waits for the product and measures. */
static void origin(double *numbers, double *product, size_t bytes) {
    ptl_handle_md_t md = bind_memory(numbers, MAX_BYTES, 0, PTL_CT_NONE);
    ptl_me_t me = {.hpu_memory = PTL_INVALID_HANDLE};
    ptl_handle_me_t entry = append(product, PONG, &me, PTL_ME_EVENT_CT_BYTES);
    uint64_t time_ps = 0;
    bool ok = true;
    for (unsigned round = 0; round < ROUNDS; round++) {
        fill(numbers, bytes / 8, 2 * round + 1);
        fill(product, MAX_DOUBLES, 2 * round);
        CHECK(spin_barrier());
        uint64_t start_ps = spin_time_ps();
        for (size_t at = 0; at < bytes; at += piece)
            put(md, at, bytes - at < piece ? bytes - at : piece, 1, BITS);
        if (pong) {
            await_count(me.ct_handle, (round + 1) * bytes);
            time_ps = spin_time_ps() - start_ps;
            ok &= multiplied(product, bytes / 8, 2 * round, 2 * round + 1);
        }
        CHECK(spin_barrier()); /* the messages have been read and used */
    }
    if (pong)
        print_time(bytes, time_ps, ok);
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlCTFree(me.ct_handle));
    CHECK(PtlMDRelease(md));
}

static void destination(double *numbers, double *temporary, size_t bytes) {
    struct accumulate state = {.offset = 0};
    struct pong pong_state;
    ptl_me_t me = {.hpu_memory = PTL_INVALID_HANDLE};
    uint64_t time_ps = 0;
    bool ok = true;
    if (handlers) {
        me.header_handler = pong ? pong_header : NULL;
        me.payload_handler = pong ? pong_payload : accumulate_payload;
        me.hpu_initial_state = pong ? (void *)&pong_state : &state;
        me.hpu_initial_state_length = pong ? sizeof pong_state : sizeof state;
        CHECK(PtlHPUAllocMem(me.hpu_initial_state_length, ni, &me.hpu_memory));
    }
    ptl_handle_me_t entry = append(handlers ? numbers : temporary, BITS, &me, 0);
    ptl_handle_md_t md = bind_memory(numbers, MAX_BYTES, 0, PTL_CT_NONE);
    for (unsigned round = 0; round < ROUNDS; round++) {
        fill(numbers, MAX_DOUBLES, 2 * round);
        CHECK(spin_barrier()); /* both leave it at the same time, when rank 0 calls PtlPut */
        uint64_t start_ps = spin_time_ps();
        ptl_size_t count = round * messages(bytes);
        for (size_t at = 0, part; at < bytes; at += part) {
            part = bytes - at < piece ? bytes - at : piece;
            await_count(me.ct_handle, ++count);
            if (handlers)
                continue;
            accumulate_multiply(numbers + at / 8, temporary + at / 8, part / 16);
            spin_host_memory(2 * part, part); /* README.md says what this stands for */
            if (pong)
                put(md, at, part, 0, PONG);
        }
        time_ps = spin_time_ps() - start_ps;
        ok &= multiplied(numbers, bytes / 8, 2 * round, 2 * round + 1);
        CHECK(spin_barrier());
    }
    if (!pong)
        print_time(bytes, time_ps, ok);
    else if (!ok)
        fail("wrong product of %zu bytes", bytes);
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlCTFree(me.ct_handle));
    CHECK(PtlMDRelease(md));
    if (handlers)
        CHECK(PtlHPUFreeMem(&me.hpu_memory));
}

int main(int argc, char **argv) {
    mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    const char *sizes = option(argc, argv, "--sizes", usage), *pieces = argument(argc, argv, "--piece");
    double *numbers = allocate(MAX_BYTES), *other = allocate(MAX_BYTES);
    size_t bytes;
    handlers = mode == HANDLER || mode == HANDLER_PONG;
    pong = mode == CPU_PONG || mode == HANDLER_PONG;
    if (spin_size() != 2)
        fail("needs 2 ranks");
    if (pieces != NULL && (handlers || !next_number(&pieces, &piece) || piece == 0 || piece % 16 != 0))
        fail("--piece: expected a multiple of 16, and a mode with a CPU");
    start(PT, NULL);
    while (next_number(&sizes, &bytes)) {
        if (bytes == 0 || bytes % 16 != 0 || bytes > MAX_BYTES)
            fail("%zu bytes: %s", bytes, usage);
        if (spin_rank() == 0)
            origin(numbers, other, bytes);
        else
            destination(numbers, other, bytes);
    }
    finish();
    return 0;
}
