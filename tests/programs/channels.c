/* Channels of three ranks: rank 1 has two to rank 0, and one to rank 2, which is ready long before or after it.
 * Handlers add arriving data to the number in their channel's state. Each rank prints its errors. */
#include <spin/connect.h>
#include <stdio.h>

#define EXPECT(condition) ((condition) ? (void)0 : (void)printf("rank %d: %s\n", spin_rank(), #condition))

struct sum {
    uint32_t first, total;
};

__handler int add(const ptl_payload_t p, void *state) {
    struct sum *sum = state;
    for (uint32_t i = 0; i < p.length / 4; i++)
        __atomic_fetch_add(&sum->total, ((const uint32_t *)p.base)[i], __ATOMIC_RELAXED);
    return SUCCESS;
}

__handler int store(int dropped_bytes, bool flow_control_triggered, void *state) {
    if (dropped_bytes || flow_control_triggered)
        return FAIL;
    return PtlHandlerDMAToHostB(state, 0, sizeof(struct sum), PTL_ME_HOST_MEM) ? FAIL : SUCCESS;
}

static void receive(int peer, ptl_match_bits_t bits, uint32_t first, uint32_t total) {
    struct sum result = {0, 0}, start = {first, first};
    struct channel_options options = {
        .start = &result, .length = sizeof result, .bits = bits, .state = &start, .state_length = sizeof start};
    channel_id_t channel = connect(peer, &options, NULL, &add, &store);
    EXPECT(channel != NULL);
    EXPECT(channel_wait(channel, 2) == PTL_OK);
    EXPECT(result.first == first);
    EXPECT(result.total == first + 2 * total);
    EXPECT(channel_close(channel) == PTL_OK);
}

static void send(int peer, ptl_match_bits_t bits, uint32_t number) {
    static uint32_t numbers[2]; /* the card reads them after the call */
    numbers[0] = number, numbers[1] = 1;
    struct channel_options options = {.start = numbers, .length = sizeof numbers, .bits = bits};
    channel_id_t channel = connect(peer, &options, NULL, NULL, NULL);
    EXPECT(channel != NULL);
    for (int i = 0; i < 2; i++)
        EXPECT(channel_send(channel, 0, sizeof numbers) == PTL_OK);
}

static void refusals(void) {
    struct channel_options high = {.bits = 1ull << 63};
    EXPECT(connect(1, &high, NULL, NULL, NULL) == NULL && channel_error == PTL_ARG_INVALID);
    EXPECT(connect(99, , NULL, NULL, NULL) == NULL && channel_error == PTL_ARG_INVALID);
}

int main(void) {
    channels_start();
    spin_host_compute(spin_rank() == 2 ? 0 : 5000);
    if (spin_rank() == 0) {
        receive(1, 7, 100, 21);
        send(1, 0, 30);
        refusals();
    } else if (spin_rank() == 1) {
        send(0, 7, 20);
        receive(0, 0, 1000, 31);
        receive(2, 8, 5, 41);
    } else {
        send(1, 8, 40);
    }
    spin_barrier();
    PtlFini();
    return 0;
}
