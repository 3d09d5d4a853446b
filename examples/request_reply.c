/* A server without a CPU: handlers read rows of a table from host memory and send them to clients.
 * spincc examples/request_reply.c -o request_reply && spinrun -n 3 ./request_reply */
#include "card.h"
#include <inttypes.h>

enum { REQUESTS = 1, REPLIES = 2, ROWS = 1000 };
enum { FOUND = 0, NO_SUCH_ROW = 1 }; /* the header data of a reply */

struct row {
    uint32_t number;
    char name[28];
};

/* The number of the row is the header data of the request, which has no payload. A reply is sent in any case, or the client would
 * wait for ever. */
__handler int look_up(const ptl_header_t h, void *state) {
    struct row row;
    ptl_size_t length = 0;
    (void)state;
    if (h.hdr_data < ROWS) {
        length = sizeof row;
        if (PtlHandlerDMAFromHostB(h.hdr_data * sizeof row, &row, sizeof row, PTL_ME_HOST_MEM) != 0)
            return FAIL;
    }
    const ptl_hdr_data_t status = length != 0 ? FOUND : NO_SUCH_ROW;
    return PtlHandlerPutFromDevice(&row, length, 0, PTL_NO_ACK_REQ, h.source_id, REPLIES, 0, NULL, status) == 0
               ? PROCEED
               : FAIL;
}

/* Asks rank 0 for a row; returns true if it exists. */
static bool ask(ptl_handle_md_t nothing, ptl_handle_eq_t events, uint64_t number) {
    const ptl_process_t server = {.rank = 0};
    ptl_event_t event;
    CHECK(PtlPut(nothing, 0, 0, PTL_NO_ACK_REQ, server, 0, REQUESTS, 0, NULL, number));
    do
        CHECK(PtlEQWait(events, &event));
    while (event.type != PTL_EVENT_PUT);
    CHECK(event.ni_fail_type == PTL_NI_OK ? PTL_OK : PTL_FAIL);
    return event.hdr_data == FOUND;
}

int main(void) {
    static struct row table[ROWS];
    ptl_handle_eq_t events;
    card_open(&events, 16);
    if (spin_rank() == 0) {
        for (uint32_t i = 0; i < ROWS; i++) {
            table[i].number = i;
            snprintf(table[i].name, sizeof table[i].name, "row %u of the table", i);
        }
        ptl_me_t me = card_entry(table, sizeof table, REQUESTS);
        me.header_handler = look_up;
        card_append(&me);
        CHECK(spin_barrier()); /* from here on the server's program does nothing */
    } else {
        struct row row;
        ptl_me_t me = card_entry(&row, sizeof row, REPLIES);
        card_append(&me);
        CHECK(spin_barrier());
        ptl_handle_md_t nothing = card_memory(NULL, 0);
        for (uint64_t number = (uint64_t)spin_rank(); number < 2 * ROWS; number += 499) {
            if (ask(nothing, events, number))
                printf("rank %d: %s\n", spin_rank(), row.name);
            else
                printf("rank %d: there is no row %" PRIu64 "\n", spin_rank(), number);
        }
    }
    card_close();
    return 0;
}
