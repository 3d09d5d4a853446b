// C++: a template that host and card share; the card finds the least and the greatest of many numbers.
// spincc -std=c++17 examples/minmax.cpp -o minmax && spinrun -n 4 ./minmax
#include "card.h"
#include <vector>

// The range of the values seen so far. Handlers may use templates and lambdas, but no exceptions and no global constructors.
template <typename T> struct Range {
    T least, greatest;

    // Extends the range; several HPUs may do so at the same time.
    void extend(T value) {
        replace(&least, value, [](T old, T fresh) { return fresh < old; });
        replace(&greatest, value, [](T old, T fresh) { return fresh > old; });
    }

  private:
    template <typename Better> static void replace(T *place, T value, Better better) {
        T old = __atomic_load_n(place, __ATOMIC_RELAXED);
        while (better(old, value) &&
               !__atomic_compare_exchange_n(place, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        }
    }
};

using Values = Range<int32_t>;

// Each packet first computes its own range, which saves atomic operations.
__handler int find(const ptl_payload_t p, void *state) {
    const auto *values = reinterpret_cast<const int32_t *>(p.base);
    const uint32_t count = p.length / sizeof *values;
    Values packet = {INT32_MAX, INT32_MIN};
    for (uint32_t i = 0; i < count; i++) {
        packet.least = values[i] < packet.least ? values[i] : packet.least;
        packet.greatest = values[i] > packet.greatest ? values[i] : packet.greatest;
    }
    static_cast<Values *>(state)->extend(packet.least);
    static_cast<Values *>(state)->extend(packet.greatest);
    return SUCCESS;
}

__handler int write_range(int dropped_bytes, bool flow_control_triggered, void *state) {
    if (dropped_bytes != 0 || flow_control_triggered)
        return FAIL;
    return PtlHandlerDMAToHostB(state, 0, sizeof(Values), PTL_ME_HOST_MEM) == 0 ? SUCCESS : FAIL;
}

int main() {
    Values range = {INT32_MAX, INT32_MIN};
    ptl_handle_ct_t messages = PTL_CT_NONE;
    card_open(nullptr, 0);
    if (spin_rank() == 0) {
        ptl_me_t me = card_entry(&range, sizeof range, 0);
        me.payload_handler = find;
        me.completion_handler = write_range;
        me.hpu_initial_state = &range;
        me.hpu_initial_state_length = sizeof range;
        CHECK(PtlHPUAllocMem(sizeof range, ni, &me.hpu_memory));
        messages = card_append(&me);
    }
    CHECK(spin_barrier());
    std::vector<int32_t> values;
    for (int i = 0; i < 10000; i++) // 0, 1, 4, ... modulo a prime, with the sign of the rank's parity
        values.push_back((spin_rank() % 2 == 0 ? 1 : -1) * static_cast<int32_t>(i * int64_t{i} % 10007));
    if (spin_rank() != 0)
        card_put(card_memory(values.data(), values.size() * 4), values.size() * 4, 0, 0);
    else {
        card_wait(messages, static_cast<ptl_size_t>(spin_size()) - 1);
        printf("from %d to %d\n", range.least, range.greatest);
    }
    card_close();
    return 0;
}
