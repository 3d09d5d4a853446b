/* The ping-pong handlers of sPIN App. C.3.1; main() prints where its handlers are. */
#include <spin.h>
#include <stdio.h>

typedef struct {
    ptl_size_t offset;
    ptl_process_t source;
    ptl_size_t length;
    bool stream;
} pingpong_info_t;

struct host_only {
    const char *name;
    long value;
};

extern const void *stub_image, *stub_handlers_start;

__handler int pp_header(const ptl_header_t h, void *state) {
    pingpong_info_t *i = state;
    i->source = h.source_id;
    i->length = h.length;
    i->stream = h.length > 4096;
    return i->stream ? PROCESS_DATA : PROCEED;
}

__handler static int pp_payload(const ptl_payload_t p, void *state) {
    pingpong_info_t *i = state;
    PtlHandlerPutFromDevice(p.base, p.length, PTL_LOCAL_ME_CT, PTL_NO_ACK_REQ, i->source, 10, 0, NULL, 0);
    return SUCCESS;
}

__handler int pp_completion(int dropped_bytes, bool flow_control_triggered, void *state) {
    pingpong_info_t *i = state;
    if (!i->stream && !dropped_bytes && !flow_control_triggered)
        PtlHandlerPutFromHost(i->offset, i->length, 1, 0, i->source, 10, 0, NULL, 0);
    return SUCCESS;
}

static void show(const struct host_only *handler) { printf("%s %ld\n", handler->name, handler->value); }

int main(void) {
    const struct {
        const char *name;
        const void *address;
    } handlers[] = {{"pp_header", (const void *)pp_header},
                    {"pp_payload", (const void *)pp_payload},
                    {"pp_completion", (const void *)pp_completion}};
    for (int i = 0; i < 3; i++) {
        struct host_only line = {handlers[i].name,
                                 (const char *)handlers[i].address - (const char *)stub_handlers_start};
        show(&line);
    }
    return stub_image == NULL;
}
