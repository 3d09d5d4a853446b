/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of several tenants, each with an execution context and a message queue.
 *
 * Each argument HANDLER:BYTES:WORK:PACKETS:GAP[:PRIORITY[:START]] is a tenant: PACKETS packets of BYTES bytes for the
 * handler HANDLER_ph, whose first word is WORK, one each GAP cycles from cycle START on, and the priority of the
 * tenant's message queue. `neighbour=N` stands for one of the tenants below. The packets of all tenants arrive in the order
 * of their times. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pspinsim.h"
#include "spin.h"

#define MOST 8
#define HANDLER_MEMORY 16384
#define HOST_MEMORY 65536

struct tenant {
    char handler[32];
    unsigned bytes, work, packets, gap, priority, start, sent;
    spin_ec_t context;
};

static const char *const neighbours[] = {
    "spin:64:1:2:100:0:400000", /* none: two packets after the end of the others */
    "spin:64:2000:4000:50",     /* handlers of 2,000 cycles, which need 40 HPUs */
    "copy:64:4096:4000:60",     /* copies of 4 KiB to the host, 8 % more than its link carries */
    "send:64:4096:4000:60",     /* packets of 4 KiB, 7 % more than the outbound engine reads */
};
#define NEIGHBOURS (sizeof neighbours / sizeof *neighbours)

static struct tenant tenants[MOST];
static unsigned done;

static void fed_back(uint64_t tenant, uint64_t arrival, uint64_t submitted, uint64_t end) {
    (void)tenant;
    (void)arrival;
    (void)submitted;
    (void)end;
    done++;
}

static int prepare(struct tenant *tenant, unsigned number) {
    char name[48];
    size_t size;
    spin_nic_addr_t handler = 0;
    snprintf(name, sizeof name, "%s_ph", tenant->handler);
    if (spin_find_handler_by_name("build/tenants", name, &handler, &size) != SPIN_SUCCESS)
        return 0;
    tenant->context.ph_addr = handler;
    tenant->context.ph_size = (mem_size_t)size;
    tenant->context.handler_mem_addr = 0x1c300000 + number * HANDLER_MEMORY;
    tenant->context.handler_mem_size = HANDLER_MEMORY;
    tenant->context.host_mem_addr = 0x1000000000000000 + (uint64_t)number * HOST_MEMORY;
    tenant->context.host_mem_size = HOST_MEMORY;
    pspinsim_set_fmq_prio(number, (uint8_t)tenant->priority);
    return 1;
}

/* Returns the tenant whose packet is next, if any. */
static struct tenant *next(unsigned count, uint64_t *at) {
    struct tenant *first = NULL;
    for (unsigned number = 0; number < count; number++) {
        struct tenant *tenant = &tenants[number];
        uint64_t time = tenant->start + (uint64_t)tenant->sent * tenant->gap;
        if (tenant->sent < tenant->packets && (first == NULL || time < *at)) {
            first = tenant;
            *at = time;
        }
    }
    return first;
}

int main(int argc, char **argv) {
    static uint32_t packet[4096];
    unsigned count = 0, all = 0;
    pspin_conf_t conf;
    for (int at = 1; at < argc; at++, count++) {
        struct tenant *tenant = &tenants[count];
        const char *text = argv[at];
        unsigned neighbour = NEIGHBOURS;
        if (sscanf(text, "neighbour=%u", &neighbour) == 1 && neighbour < NEIGHBOURS)
            text = neighbours[neighbour];
        int found = count == MOST
                        ? 0
                        : sscanf(text, "%31[a-z]:%u:%u:%u:%u:%u:%u", tenant->handler, &tenant->bytes, &tenant->work,
                                 &tenant->packets, &tenant->gap, &tenant->priority, &tenant->start);
        if (found < 5 || tenant->bytes < 8 || tenant->bytes > sizeof packet) {
            fprintf(stderr, "tenants: %s: must be HANDLER:BYTES:WORK:PACKETS:GAP[:PRIORITY[:START]], at most %d\n",
                    argv[at], MOST);
            return 2;
        }
        all += tenant->packets;
    }
    pspinsim_default_conf(&conf);
    conf.slm_files_path = "build/slm_files";
    conf.no_conf.max_pkt_size = 9216;
    if (pspinsim_init(argc, argv, &conf) != SPIN_SUCCESS)
        return 1;
    for (unsigned number = 0; number < count; number++)
        if (!prepare(&tenants[number], number))
            return 1;
    pspinsim_cb_set_pkt_feedback(fed_back);
    uint64_t now = 0, at = 0, later = 0;
    struct tenant *tenant = next(count, &now);
    while (tenant != NULL) {
        packet[0] = tenant->work;
        tenant->sent++;
        struct tenant *following = next(count, &at);
        later = following == NULL ? now + 1 : at;
        pspinsim_packet_add(&tenant->context, (uint32_t)(tenant - tenants), (uint8_t *)packet, tenant->bytes,
                            tenant->bytes, tenant->sent == tenant->packets, (uint32_t)(later - now),
                            (uint64_t)(tenant - tenants));
        now = later;
        tenant = following;
    }
    pspinsim_packet_eos();
    if (pspinsim_run() != SPIN_SUCCESS || pspinsim_fini() != SPIN_SUCCESS)
        return 1;
    if (done != all) {
        fprintf(stderr, "tenants: %u of %u packets are done\n", done, all);
        return 1;
    }
    return 0;
}
