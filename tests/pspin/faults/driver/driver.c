/* SPDX-License-Identifier: Apache-2.0 */
/* All packets are fed back, whatever their handlers do, and the simulation says that handlers have failed. */
#include <stdio.h>

#include "gdriver.h"
#include "pspinsim.h"

int main(int argc, char **argv) {
    int contexts;
    if (gdriver_init(argc, argv, NULL, &contexts) != GDRIVER_OK ||
        gdriver_add_ectx("build/faults", "faults_hh", "faults_ph", NULL, NULL, NULL, 0, NULL, 0) != GDRIVER_OK)
        return 2;
    int ran = gdriver_run();
    if (gdriver_fini() != GDRIVER_OK)
        return 3;
    return ran == GDRIVER_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
