/* The trees of handlers/broadcast on the host: every rank but the root is the child of exactly one, for many sizes and
 * roots; and no rank forwards in both of two trees. */
#include <handlers/broadcast/trees.h>
#include <stdio.h>

enum { MOST = 300 };

static broadcast_rule *const rules[] = {broadcast_binomial, broadcast_chain, broadcast_binary, broadcast_binary};

int main(void) {
    for (uint32_t ranks = 1; ranks <= MOST; ranks++)
        for (uint32_t root = 0; root < ranks; root += 1 + ranks / 7) {
            unsigned children[4][MOST] = {{0}};
            for (uint32_t rule = 0; rule < 4; rule++) {
                unsigned parents[MOST] = {0};
                struct broadcast b = {.ranks = ranks, .root = root, .tree = rule == 3 && ranks > 1};
                for (uint32_t rank = 0; rank < ranks; rank++) {
                    b.rank = broadcast_place(rank, ranks, b.tree);
                    b.reach = broadcast_reach(b.rank, ranks);
                    for (int32_t place; (place = b.rank < ranks ? rules[rule](&b, children[rule][rank]) : -1) != -1;
                         children[rule][rank]++)
                        parents[broadcast_process(&b, (uint32_t)place).rank]++;
                }
                for (uint32_t rank = 0; rank < ranks; rank++)
                    if (parents[rank] != (rank != root)) {
                        printf("rule %u, %u ranks, root %u: rank %u has %u parents\n", rule, ranks, root, rank,
                               parents[rank]);
                        return 1;
                    }
            }
            for (uint32_t rank = 1; rank < ranks; rank++)
                if (children[2][rank] > 0 && children[3][rank] > 0) {
                    printf("%u ranks: rank %u forwards in both trees\n", ranks, rank);
                    return 1;
                }
        }
    return 0;
}
