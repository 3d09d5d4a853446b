/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with the arguments of handlers: two are used as handlers without __handler. */
#include <spin.h>

static int helper(const ptl_payload_t p, void *state) { return p.length > 8 && state ? SUCCESS : DROP; }

/* A table that only handlers use. */
static int even(const ptl_payload_t p, void *state) { return helper(p, state); }

__handler int marked(const ptl_payload_t p, void *state) {
    int (*volatile choice)(const ptl_payload_t, void *) = even;
    return choice(p, state);
}

static int first(const ptl_header_t h, void *state) { return h.length && state ? PROCEED : DROP; }

int last(int dropped_bytes, bool flow_control_triggered, void *state) {
    return dropped_bytes && flow_control_triggered && state ? FAIL : SUCCESS;
}

ptl_completion_handler_t table[] = {last};

int on_host(const ptl_header_t h, void *state) { return (int)h.length + (state != NULL); }

int main(void) {
    volatile ptl_me_t me = {.header_handler = first, .payload_handler = marked, .completion_handler = table[0]};
    ptl_header_t h = {.length = 3};
    return me.header_handler == NULL && on_host(h, NULL);
}
