/* SPDX-License-Identifier: Apache-2.0 */
/* C11's atomic operations on 64 bits (C11 7.17), under the names that compilers call. They are commands to the card, so
 * they are also atomic with respect to PtlHandlerCAS and PtlHandlerFAdd, happen at their exact time, and leave no lock
 * behind when a handler is killed. Each is sequentially consistent, whatever memory order the program asks for. Compilers
 * generate smaller sizes inline. */
#include <spin.h>

typedef uint64_t word;

/* Writes `desired` if `*at` equals `*expected`; otherwise stores the value of `*at` in `*expected`. */
static inline bool swapped(word *at, word *expected, word desired) {
    struct spin_cas_cmd cmd = {.compare = *expected, .swap = desired, .address = spin_address(at)};
    int done = spin_command(SPIN_CMD_CAS, spin_address(&cmd));
    *expected = cmd.compare;
    return done;
}

static inline word added(word *at, word increment) {
    struct spin_fetch_add_cmd cmd = {.increment = increment, .address = spin_address(at)};
    spin_command(SPIN_CMD_FETCH_ADD, spin_address(&cmd));
    return cmd.before;
}

word __atomic_load_8(word *at, int order);
void __atomic_store_8(word *at, word value, int order);
bool __atomic_compare_exchange_8(word *at, word *expected, word desired, int success, int failure);
word __atomic_fetch_add_8(word *at, word value, int order);
word __atomic_fetch_sub_8(word *at, word value, int order);

word __atomic_load_8(word *at, int order) {
    (void)order;
    return added(at, 0);
}

bool __atomic_compare_exchange_8(word *at, word *expected, word desired, int success, int failure) {
    (void)success, (void)failure;
    return swapped(at, expected, desired);
}

word __atomic_fetch_add_8(word *at, word value, int order) {
    (void)order;
    return added(at, value);
}

word __atomic_fetch_sub_8(word *at, word value, int order) {
    (void)order;
    return added(at, -value);
}

/* The other operations repeat a compare-and-swap until no other handler changes the value in between; the first guess
 * may be wrong. */
#define UPDATE(name, result)                                                                                           \
    word __atomic_##name##_8(word *at, word value, int order);                                                         \
    word __atomic_##name##_8(word *at, word value, int order) {                                                        \
        (void)order;                                                                                                   \
        word before = *at;                                                                                             \
        while (!swapped(at, &before, (result))) {                                                                      \
        }                                                                                                              \
        return before;                                                                                                 \
    }

UPDATE(exchange, value)
UPDATE(fetch_and, before &value)
UPDATE(fetch_or, before | value)
UPDATE(fetch_xor, before ^ value)
UPDATE(fetch_nand, ~(before &value))
UPDATE(fetch_umax, before > value ? before : value)
UPDATE(fetch_umin, before < value ? before : value)

void __atomic_store_8(word *at, word value, int order) { __atomic_exchange_8(at, value, order); }
