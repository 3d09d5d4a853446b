/* SPDX-License-Identifier: Apache-2.0 */
/* Start, barrier and end of many ranks: `spinkit bench` measures the time with 1,024 of them. */

#include <spin.h>
#include <stdio.h>

int main(void) {
    if (PtlInit() != PTL_OK || spin_barrier() != PTL_OK) {
        fprintf(stderr, "rank %d could not reach the barrier\n", spin_rank());
        return 1;
    }
    PtlFini();
    return 0;
}
