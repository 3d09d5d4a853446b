/* The ping-pong of the sPIN talk, with the handlers and the call of connect as they are printed. Rank 0 prints its half
 * round trip of 8 bytes in each round. */
#include <spin/connect.h>
#include <stdio.h>

typedef struct {
    ptl_process_t source;
} pingpong_info_t;

__handler int pp_header_handler(const ptl_header_t h, void *state) {
    pingpong_info_t *i = state;
    i->source = h.source_id;
    return PROCESS_DATA; // execute payload handler to put from device
}

__handler int pp_payload_handler(const ptl_payload_t p, void *state) {
    pingpong_info_t *i = state;
    PtlHandlerPutFromDevice(p.base, p.length, 1, 0, i->source, 10, 0, NULL, 0);
    return SUCCESS;
}

__handler int pp_completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) { return SUCCESS; }

static int play(int peer) {
    char message[8] = "ping";
    struct channel_options memory = {.start = message, .length = sizeof message};
    channel_id_t channel = connect(peer, &memory, NULL, NULL, NULL);
    if (channel == NULL)
        return 1;
    for (int round = 1; round <= 3; round++) {
        uint64_t start = spin_time_ps();
        if (channel_send(channel, 0, sizeof message) != PTL_OK || channel_wait(channel, round) != PTL_OK)
            return 1;
        printf("%s %.3f ns\n", message, (double)(spin_time_ps() - start) / 2e3);
    }
    return channel_close(channel) != PTL_OK;
}

int main(void) {
    int peer = 1 - spin_rank(), failed = 0;
    if (spin_rank() == 0)
        failed = play(peer);
    else
        failed = connect(peer, /* … */, &pp_header_handler, &pp_payload_handler, &pp_completion_handler) == NULL;
    spin_barrier();
    PtlFini();
    return failed;
}
