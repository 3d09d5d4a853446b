/* The tree of handlers/broadcast on the host: every rank but the root is the child of exactly one, for many sizes and
 * roots. */
#include <handlers/broadcast/broadcast.h>
#include <stdio.h>

enum { MOST = 300 };

int main(void) {
    for (uint32_t ranks = 1; ranks <= MOST; ranks++)
        for (uint32_t root = 0; root < ranks; root += 1 + ranks / 7) {
            unsigned parents[MOST] = {0};
            for (uint32_t rank = 0; rank < ranks; rank++)
                for (uint32_t distance = broadcast_reach(rank, ranks); distance > 0; distance /= 2)
                    parents[broadcast_child(rank, ranks, root, distance).rank]++;
            for (uint32_t rank = 0; rank < ranks; rank++)
                if (parents[rank] != (rank != root)) {
                    printf("%u ranks, root %u: rank %u has %u parents\n", ranks, root, rank, parents[rank]);
                    return 1;
                }
        }
    return 0;
}
