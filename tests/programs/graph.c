/* The handlers of sdk/handlers/graph, message by message: `graph visit|relax[-host] VERTICES CAPACITY MESSAGE…`, with
 * the state on the card, or in host memory and eight bounds of it on the card. A message is a list of updates,
 * VERTEX:VALUE,VERTEX:VALUE…, or COUNTxVERTEX:VALUE for equal ones. Rank 0 sends one message after the other and prints
 * whether it was acknowledged and after how long; rank 1 prints what passed, after every second message. */
#include <handlers/graph/graph.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != PTL_OK) {                                                                                           \
            fprintf(stderr, "%d: %s returns %d\n", spin_rank(), #call, rc_);                                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { PT = 1, BITS = 7, MOST = 512, CACHE_BITS = 3 };

static ptl_handle_ni_t ni;
static ptl_pt_index_t pt;

static void serve(bool visit, bool in_host, uint32_t vertices, uint32_t capacity, int messages) {
    struct graph_ring *ring = malloc(graph_host_bytes(vertices, capacity));
    struct graph_update update;
    ptl_handle_ct_t made;
    CHECK(PtlCTAlloc(ni, &made));
    int rc = in_host ? graph_serve_host(ni, pt, BITS, visit, vertices, CACHE_BITS, ring, capacity, made)
                     : graph_serve(ni, pt, BITS, visit, vertices, ring, capacity, made);
    if (rc == PTL_NO_SPACE)
        printf("no space\n");
    else
        CHECK(rc);
    for (int i = 0; i <= messages; i++) {
        CHECK(spin_barrier());
        while (i % 2 == 0 && graph_take(ring, capacity, &update))
            printf("passed %u:%u\n", update.vertex, update.value);
        fflush(stdout);
        CHECK(spin_barrier());
    }
    free(ring);
}

static uint32_t parse(const char *text, struct graph_update *updates) {
    uint32_t count = 0;
    for (int length; *text != '\0'; text += length + (text[length] == ',')) {
        unsigned times = 1;
        struct graph_update update;
        if (sscanf(text, "%ux%u:%u%n", &times, &update.vertex, &update.value, &length) != 3 &&
            (times = 1, sscanf(text, "%u:%u%n", &update.vertex, &update.value, &length)) != 2) {
            fprintf(stderr, "%s: not an update\n", text);
            exit(2);
        }
        for (; times > 0 && count < MOST; times--)
            updates[count++] = update;
    }
    return count;
}

static void send_all(int messages, char **texts) {
    static struct graph_update updates[MOST];
    ptl_md_t md = {updates, sizeof updates, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, PTL_CT_NONE};
    ptl_handle_md_t handle;
    ptl_ct_event_t acks;
    CHECK(PtlCTAlloc(ni, &md.ct_handle));
    CHECK(PtlMDBind(ni, &md, &handle));
    for (int i = 0; i < messages; i++) {
        uint32_t count = parse(texts[i], updates);
        CHECK(PtlCTSet(md.ct_handle, (ptl_ct_event_t){0, 0}));
        CHECK(spin_barrier());
        CHECK(spin_barrier());
        uint64_t begin = spin_time_ps();
        CHECK(PtlPut(handle, 0, count * sizeof *updates, PTL_CT_ACK_REQ, (ptl_process_t){.rank = 1}, pt, BITS, 0, NULL,
                     0));
        CHECK(PtlCTWait(md.ct_handle, 1, &acks));
        printf("%s after %llu ps\n", acks.failure != 0 ? "failed" : "made",
               (unsigned long long)(spin_time_ps() - begin));
        fflush(stdout);
    }
    CHECK(spin_barrier());
    CHECK(spin_barrier());
}

int main(int argc, char **argv) {
    if (argc < 4 || spin_size() != 2)
        return fprintf(stderr, "usage: spinrun -n 2 graph visit|relax[-host] VERTICES CAPACITY MESSAGE...\n"), 2;
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    CHECK(spin_set_map(ni));
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PT, &pt));
    if (spin_rank() == 1)
        serve(strncmp(argv[1], "visit", 5) == 0, strstr(argv[1], "-host") != NULL, (uint32_t)atoi(argv[2]),
              (uint32_t)atoi(argv[3]), argc - 4);
    else
        send_all(argc - 4, argv + 4);
    CHECK(PtlNIFini(ni));
    PtlFini();
    return 0;
}
