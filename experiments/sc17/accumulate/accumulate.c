/* SPDX-License-Identifier: Apache-2.0 */
/* Remote accumulate (sPIN §4.4.2, App. C.3.2): rank 0 sends an array of double complex numbers, rank 1 multiplies it
 * onto its own.
 *
 *   --mode cpu           the card stores the array in a temporary buffer, rank 1's CPU multiplies
 *   --mode handler       payload handlers on rank 1's card multiply
 *   --mode cpu-pong      as cpu, and the CPU sends the product back to rank 0
 *   --mode handler-pong  as handler, and the handlers send the product back, packet by packet: the listing's `pong`
 *   --mode listing       as handler, but by the handlers of the paper's listing, with complex numbers of two floats
 *   --mode cached        as handler, but the card keeps the array in HPU memory until another message flushes it
 *   --mode atomic        rank 1's card multiplies by itself (PtlAtomic), in messages as long as it permits
 *   --sizes N,N,…        message sizes in bytes, multiples of 16
 *   --piece N            with a CPU: rank 0 sends messages of at most N bytes, a multiple of 16, so that rank 1
 *                        multiplies one while the next arrives
 *
 * Prints one JSON object a line for each size: {"mode", "bytes", "time_ps", "data_ok"}. The time is from rank 0's call
 * of PtlPut to rank 1's program seeing the result in its memory; with `pong`, to rank 0's program seeing it in its; with
 * `cached`, to rank 1's program knowing that it is on the card. There `flush_ps` is the time from rank 0's call to flush
 * to rank 1's program seeing the result of all rounds in its memory. */
#include "../../common/common.h"
#include "listing.h"
#include <handlers/accumulate/accumulate.h>

enum { PT = 3, BITS = 20, PONG = 10, FLUSH = 30 }; /* portal table index and match bits */
enum { WARM_UP = 2, ROUNDS = WARM_UP + 1 };        /* branch predictors of the HPUs settle; the last round counts */
enum { MAX_BYTES = 1 << 20 };

static const char usage[] = "accumulate --mode cpu|handler|cpu-pong|handler-pong|listing|cached|atomic "
                            "--sizes BYTES[,BYTES...] [--piece BYTES]";
enum mode { CPU, HANDLER, CPU_PONG, HANDLER_PONG, LISTING, CACHED, ATOMIC, MODES };
static const char *const modes[MODES] = {"cpu", "handler", "cpu-pong", "handler-pong", "listing", "cached", "atomic"};

static enum mode mode;
static bool cpu, pong;           /* rank 1's CPU multiplies; the product is sent back */
static unsigned rounds = ROUNDS; /* the last one counts */
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

/* Bytes of a real number. */
static size_t width(void) { return mode == LISTING ? sizeof(float) : sizeof(double); }

static void fill(void *array, size_t bytes, unsigned seed) {
    for (size_t i = 0; i < bytes / width(); i++)
        if (mode == LISTING)
            ((float *)array)[i] = (float)number(i, seed);
        else
            ((double *)array)[i] = number(i, seed);
}

static double at(const void *array, size_t i) {
    return mode == LISTING ? (double)((const float *)array)[i] : ((const double *)array)[i];
}

/* Seeds of the data onto which a round multiplies, and by which. */
static unsigned old_seed(unsigned round) { return mode == CACHED ? 0 : 2 * round; }
static unsigned new_seed(unsigned round) { return 2 * round + 1; }

/* Returns whether `numbers` has the products of the first `bytes` after the rounds from `first` to `last`, followed by old
 * data. */
static bool multiplied(const void *numbers, size_t bytes, unsigned first, unsigned last) {
    unsigned onto = old_seed(first);
    size_t count = bytes / width();
    for (size_t i = 0; i < count; i += 2) {
        long re = number(i, onto), im = number(i + 1, onto);
        for (unsigned round = first; round <= last; round++) {
            long a = re, b = im, c = number(i, new_seed(round)), d = number(i + 1, new_seed(round));
            re = a * c - b * d;
            im = a * d + b * c;
        }
        if (at(numbers, i) != (double)re || at(numbers, i + 1) != (double)im)
            return false;
    }
    for (size_t i = count; i < MAX_BYTES / width(); i++)
        if (at(numbers, i) != number(i, onto))
            return false;
    return true;
}

/* Number of messages that carry `bytes`. */
static size_t messages(size_t bytes) { return (bytes + piece - 1) / piece; }

/* Sends `bytes` of `md` to the same place of the other rank's entry with these match bits. */
static void put(ptl_handle_md_t md, size_t at, size_t bytes, int peer, ptl_match_bits_t bits) {
    ptl_process_t target = {.rank = peer};
    if (mode == ATOMIC)
        CHECK(PtlAtomic(md, at, bytes, PTL_NO_ACK_REQ, target, PT, bits, at, NULL, 0, PTL_PROD, PTL_DOUBLE_COMPLEX));
    else
        CHECK(PtlPut(md, at, bytes, PTL_NO_ACK_REQ, target, PT, bits, at, NULL, 0));
}

static void print_time(size_t bytes, uint64_t time_ps, uint64_t flush_ps, bool ok) {
    printf("{\"mode\":\"%s\",\"bytes\":%zu,\"time_ps\":%llu,", modes[mode], bytes, (unsigned long long)time_ps);
    if (mode == CACHED)
        printf("\"flush_ps\":%llu,", (unsigned long long)flush_ps);
    printf("\"data_ok\":%s}\n", verdict(ok));
    fflush(stdout);
}

/* Sends the array; with `pong` waits for the product and measures. */
static void origin(double *numbers, double *product, size_t bytes) {
    ptl_handle_md_t md = bind_memory(numbers, MAX_BYTES, 0, PTL_CT_NONE);
    ptl_me_t me = {.options = PTL_ME_EVENT_CT_BYTES, .hpu_memory = PTL_INVALID_HANDLE};
    CHECK(PtlCTAlloc(ni, &me.ct_handle));
    ptl_handle_me_t entry = append_entry(PT, PONG, product, MAX_BYTES, me);
    uint64_t time_ps = 0;
    bool ok = true;
    for (unsigned round = 0; round < rounds; round++) {
        fill(numbers, bytes, new_seed(round));
        fill(product, MAX_BYTES, old_seed(round));
        CHECK(spin_barrier());
        uint64_t start_ps = spin_time_ps();
        for (size_t at = 0; at < bytes; at += piece)
            put(md, at, bytes - at < piece ? bytes - at : piece, 1, BITS);
        if (pong) {
            await_count(me.ct_handle, (round + 1) * bytes);
            time_ps = spin_time_ps() - start_ps;
            ok &= multiplied(product, bytes, round, round);
        }
        CHECK(spin_barrier()); /* the messages have been read and used */
    }
    if (mode == CACHED) {
        CHECK(spin_barrier());
        put(md, 0, 0, 1, FLUSH);
        CHECK(spin_barrier());
    }
    if (pong)
        print_time(bytes, time_ps, 0, ok);
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlCTFree(me.ct_handle));
    CHECK(PtlMDRelease(md));
}

/* Prepares the entry for the handlers of this mode; `length` is that of the array. */
static void use_handlers(ptl_me_t *me, size_t length) {
    static struct accumulate state;
    static struct accumulate_cache cache;
    static struct pong pong_state;
    static struct listing listing_state;
    size_t numbers = 0; /* bytes in HPU memory */
    if (pong) {
        me->header_handler = pong_header;
        me->payload_handler = pong_payload;
        me->hpu_initial_state = &pong_state;
        me->hpu_initial_state_length = sizeof pong_state;
    } else if (mode == LISTING) {
        me->header_handler = listing_header;
        me->payload_handler = listing_payload;
        me->hpu_initial_state = &listing_state;
        me->hpu_initial_state_length = sizeof listing_state;
    } else if (mode == CACHED) {
        numbers = length < ACCUMULATE_CACHE ? length : ACCUMULATE_CACHE;
        cache.bytes = (uint32_t)numbers;
        me->payload_handler = accumulate_cached;
        me->hpu_initial_state = &cache;
        me->hpu_initial_state_length = sizeof cache;
    } else {
        me->payload_handler = accumulate_payload;
        me->hpu_initial_state = &state;
        me->hpu_initial_state_length = sizeof state;
    }
    CHECK(PtlHPUAllocMem(me->hpu_initial_state_length + numbers, ni, &me->hpu_memory));
}

/* Waits for the flush and returns its duration in ps. */
static uint64_t await_flush(double *numbers, ptl_hpu_md_h memory) {
    ptl_me_t me = {.header_handler = accumulate_flush, .hpu_memory = memory};
    CHECK(PtlCTAlloc(ni, &me.ct_handle));
    ptl_handle_me_t entry = append_entry(PT, FLUSH, numbers, MAX_BYTES, me);
    CHECK(spin_barrier());
    uint64_t start_ps = spin_time_ps();
    await_count(me.ct_handle, 1);
    uint64_t time_ps = spin_time_ps() - start_ps;
    CHECK(spin_barrier());
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlCTFree(me.ct_handle));
    return time_ps;
}

static void destination(double *numbers, double *temporary, size_t bytes) {
    const bool handlers = !cpu && mode != ATOMIC;
    ptl_me_t me = {.hpu_memory = PTL_INVALID_HANDLE};
    uint64_t time_ps = 0, flush_ps = 0;
    bool ok = true;
    if (handlers)
        use_handlers(&me, bytes);
    CHECK(PtlCTAlloc(ni, &me.ct_handle));
    ptl_handle_me_t entry = append_entry(PT, BITS, cpu ? temporary : numbers, MAX_BYTES, me);
    ptl_handle_md_t md = bind_memory(numbers, MAX_BYTES, 0, PTL_CT_NONE);
    for (unsigned round = 0; round < rounds; round++) {
        if (mode != CACHED || round == 0)
            fill(numbers, MAX_BYTES, old_seed(round));
        CHECK(spin_barrier()); /* both leave it at the same time, when rank 0 calls PtlPut */
        uint64_t start_ps = spin_time_ps();
        ptl_size_t count = round * messages(bytes);
        for (size_t at = 0, part; at < bytes; at += part) {
            part = bytes - at < piece ? bytes - at : piece;
            await_count(me.ct_handle, ++count);
            if (!cpu)
                continue;
            accumulate_multiply(numbers + at / 8, temporary + at / 8, part / 16);
            spin_host_memory(2 * part, part); /* see README.md */
            if (pong)
                put(md, at, part, 0, PONG);
        }
        time_ps = spin_time_ps() - start_ps;
        if (mode == CACHED)
            ok &= bytes > ACCUMULATE_CACHE || multiplied(numbers, 0, 0, 0); /* all products are on the card */
        else
            ok &= multiplied(numbers, bytes, round, round);
        CHECK(spin_barrier());
    }
    if (mode == CACHED) {
        flush_ps = await_flush(numbers, me.hpu_memory);
        ok &= multiplied(numbers, bytes, 0, rounds - 1);
    }
    if (!pong)
        print_time(bytes, time_ps, flush_ps, ok);
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
    cpu = mode == CPU || mode == CPU_PONG;
    pong = mode == CPU_PONG || mode == HANDLER_PONG;
    if (spin_size() != 2)
        fail("needs 2 ranks");
    if (pieces != NULL && (!cpu || !next_number(&pieces, &piece) || piece == 0 || piece % 16 != 0))
        fail("--piece: expected a multiple of 16, and a mode with a CPU");
    start(PT, NULL);
    if (mode == ATOMIC)
        piece = limits.max_atomic_size;
    if (mode == CACHED)
        rounds++; /* the first one fetches the array */
    while (next_number(&sizes, &bytes)) {
        if (bytes == 0 || bytes % 16 != 0 || bytes > MAX_BYTES)
            fail("%zu bytes: %s", bytes, usage);
        if (spin_rank() == 0)
            origin(numbers, other, bytes);
        else
            destination(numbers, other, bytes);
    }
    finish();
    return exit_status;
}
