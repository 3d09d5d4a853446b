/* Strided datatype (sPIN §5.2, App. C.3.4): rank 0 sends 4 MiB, rank 1 unpacks them into blocks at a distance of twice
 * their size.
 *
 *   --mode cpu        the card stores the message in a temporary buffer, rank 1's CPU unpacks
 *   --mode handler    payload handlers on rank 1's card unpack: those of the library
 *   --mode blocking   payload handlers unpack with blocking DMA, as in the paper's listing
 *   --blocks N,N,…    block sizes in bytes, powers of two
 *
 * Prints one JSON object a line for each block size: {"mode", "block", "time_ps", "data_ok"}; the time is from rank 0's
 * call of PtlPut to rank 1's program seeing the unpacked data in its memory. */
#include "../common/common.h"
#include <handlers/datatype/datatype.h>

enum { PT = 3, BITS = 20 };                 /* portal table index and match bits */
enum { BYTES = 4 << 20, SPAN = 2 * BYTES }; /* of the message, and in the destination */
enum { LINE = 64 };                         /* bytes of a cache line */
enum { UNTOUCHED = 0xA5 };                  /* a byte that no message has written */

static const char usage[] = "datatype --mode cpu|handler|blocking --blocks BYTES[,BYTES...]";
enum mode { CPU, HANDLER, BLOCKING };
static const char *const modes[] = {"cpu", "handler", "blocking"};

/* The handler of App. C.3.4: each DMA blocks until its data has left the card. */
__handler int unpack_blocking(const ptl_payload_t p, void *state) {
    const struct datatype_vector *v = state;
    uint32_t done = 0, length = p.length;
    for (uint32_t number = (uint32_t)p.offset / v->block; done < length; number++) {
        uint32_t within = ((uint32_t)p.offset + done) % v->block, rest = v->block - within;
        uint32_t piece = rest < length - done ? rest : length - done;
        ptl_size_t at = v->offset + (ptl_size_t)number * v->stride + within;
        if (PtlHandlerDMAToHostB(p.base + done, at, piece, PTL_ME_HOST_MEM))
            return FAIL;
        done += piece;
    }
    return SUCCESS;
}

static bool unpacked(const unsigned char *memory, size_t block) {
    for (size_t i = 0; i < SPAN; i++) {
        size_t number = i / (2 * block), within = i % (2 * block);
        unsigned char expected = within < block ? pattern(number * block + within, 0) : UNTOUCHED;
        if (memory[i] != expected)
            return false;
    }
    return true;
}

static void origin(ptl_handle_md_t md) {
    CHECK(spin_barrier());
    CHECK(PtlPut(md, 0, BYTES, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 1}, PT, BITS, 0, NULL, 0));
    CHECK(spin_barrier()); /* the message has been read and used */
}

/* README.md says what the charge stands for. */
static void unpack_on_cpu(unsigned char *memory, const unsigned char *temporary, size_t block) {
    size_t lines = block < LINE ? SPAN : BYTES; /* bytes of the lines that are written */
    for (size_t i = 0; i < BYTES / block; i++)
        memcpy(memory + 2 * block * i, temporary + block * i, block);
    spin_host_memory(block < LINE ? BYTES + lines : BYTES, lines);
}

static void destination(enum mode mode, unsigned char *memory, unsigned char *temporary, size_t block) {
    struct datatype_vector state = {.offset = 0, .block = (uint32_t)block, .stride = (uint32_t)(2 * block)};
    ptl_ct_event_t counted;
    ptl_handle_me_t entry;
    ptl_me_t me = {.start = mode == CPU ? temporary : memory,
                   .length = mode == CPU ? BYTES : SPAN,
                   .uid = PTL_UID_ANY,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = BITS,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                   .hpu_memory = PTL_INVALID_HANDLE};
    CHECK(PtlCTAlloc(ni, &me.ct_handle));
    if (mode != CPU) {
        CHECK(PtlHPUAllocMem(sizeof state, ni, &me.hpu_memory));
        me.payload_handler = mode == HANDLER ? datatype_unpack : unpack_blocking;
        me.hpu_initial_state = &state;
        me.hpu_initial_state_length = sizeof state;
    }
    CHECK(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &entry));
    memset(memory, UNTOUCHED, SPAN);
    CHECK(spin_barrier()); /* both leave it at the same time, when rank 0 calls PtlPut */
    uint64_t start_ps = spin_time_ps();
    CHECK(PtlCTWait(me.ct_handle, 1, &counted));
    if (mode == CPU)
        unpack_on_cpu(memory, temporary, block);
    uint64_t time_ps = spin_time_ps() - start_ps;
    bool ok = counted.failure == 0 && unpacked(memory, block);
    CHECK(spin_barrier());
    printf("{\"mode\":\"%s\",\"block\":%zu,\"time_ps\":%llu,\"data_ok\":%s}\n", modes[mode], block,
           (unsigned long long)time_ps, ok ? "true" : "false");
    fflush(stdout);
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlCTFree(me.ct_handle));
    if (mode != CPU)
        CHECK(PtlHPUFreeMem(&me.hpu_memory));
}

int main(int argc, char **argv) {
    enum mode mode = choice(option(argc, argv, "--mode", usage), modes, 3, usage);
    const char *blocks = option(argc, argv, "--blocks", usage);
    unsigned char *memory = allocate(SPAN), *message = allocate(BYTES);
    size_t block;
    if (spin_size() != 2)
        fail("needs 2 ranks");
    start(PT, NULL);
    ptl_handle_md_t md = bind_memory(message, BYTES, 0, PTL_CT_NONE);
    if (spin_rank() == 0)
        for (size_t i = 0; i < BYTES; i++)
            message[i] = pattern(i, 0);
    while (next_number(&blocks, &block)) {
        if (block == 0 || (block & (block - 1)) != 0 || block > BYTES)
            fail("%zu bytes: %s", block, usage);
        if (spin_rank() == 0)
            origin(md);
        else
            destination(mode, memory, message, block);
    }
    CHECK(PtlMDRelease(md));
    finish();
    return 0;
}
