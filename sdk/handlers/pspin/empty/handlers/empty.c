/* SPDX-License-Identifier: Apache-2.0 */
/* Does nothing: measures the overhead of a packet. */
#include <card.h>

__handler__ void empty_ph(handler_args_t *args) { (void)args; }

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = empty_ph;
    *th = NULL;
    *handler_mem = NULL;
}
