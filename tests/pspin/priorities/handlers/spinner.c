/* SPDX-License-Identifier: Apache-2.0 */
/* A handler that keeps its HPU busy, so that message queues compete for HPUs. */
#include <handler.h>

__handler__ void spinner_ph(handler_args_t *args) {
    (void)args;
    rt_time_wait_cycles(400);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = spinner_ph;
    *th = NULL;
    *handler_mem = NULL;
}
