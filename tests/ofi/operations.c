/* SPDX-License-Identifier: Apache-2.0 */
/* operations --group NAME: tests of the libfabric provider under spinrun. */
#include "ofi.h"

#define GROUPS(with)                                                                                                   \
    with(info) with(messages) with(tagged) with(matching) with(multi) with(rma) with(atomic) with(completions)         \
        with(names) with(threads) with(room) with(memory) with(overflow) with(flood) with(burst) with(entries)         \
            with(ended_rank) with(stopped_card)

#define DECLARE(name) void name##_group(void);
GROUPS(DECLARE)

int main(int argc, char **argv) {
    static const struct test_case groups[] = {
#define ENTRY(name) {#name, name##_group},
        GROUPS(ENTRY)};
    setvbuf(stdout, NULL, _IOLBF, 0);
    rank = spin_rank();
    ranks = spin_size();
    for (size_t i = 0; argc == 3 && strcmp(argv[1], "--group") == 0 && i < sizeof groups / sizeof *groups; i++)
        if (strcmp(argv[2], groups[i].name) == 0)
            groups[i].run();
    fprintf(stderr, "usage: %s --group NAME\n", argv[0]);
    return 2;
}
