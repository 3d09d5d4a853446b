/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the first eight bytes of each packet's data to the host, without a source in memory (PsPIN §III-B1, "host direct"). */
#include <card.h>

#include "../host_direct.h"

__handler__ void host_direct_ph(handler_args_t *args) {
    task_t *task = args->task;
    const pkt_hdr_t *header = packet_of(task);
    const uint32_t *words = packet_data(task);
    uint32_t place = HOST_DIRECT_PLACE(header->ip_hdr.identification);
    spin_write_to_host(host_address(task, place), (uint64_t)words[1] << 32 | words[0], NULL);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = host_direct_ph;
    *th = NULL;
    *handler_mem = NULL;
}
