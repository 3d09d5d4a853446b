/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of tenants. The first word of a packet has the amount of work. */
#include <handler.h>

#define WORK(task) (*(volatile uint32_t *)(task)->pkt_mem)

/* Keeps its HPU busy for the cycles of the packet. */
__handler__ void spin_ph(handler_args_t *args) { rt_time_wait_cycles(WORK(args->task)); }

/* Copies the bytes of the packet's first word from L2 to the host. */
__handler__ void copy_ph(handler_args_t *args) {
    task_t *task = args->task;
    uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
    spin_cmd_t copy;
    spin_dma_to_host(host, (uint32_t)(uintptr_t)task->handler_mem, WORK(task), 0, &copy);
    spin_cmd_wait(copy);
}

/* Reads the bytes of the packet's first word from the host into L2. */
__handler__ void fetch_ph(handler_args_t *args) {
    task_t *task = args->task;
    uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
    spin_cmd_t copy;
    spin_dma_from_host(host, (uint32_t)(uintptr_t)task->handler_mem, WORK(task), 0, &copy);
    spin_cmd_wait(copy);
}

/* Sends the bytes of the packet's first word from L2. */
__handler__ void send_ph(handler_args_t *args) {
    task_t *task = args->task;
    spin_cmd_t send;
    spin_send_packet(task->handler_mem, WORK(task), &send);
    spin_cmd_wait(send);
}

/* Answers a request of a key-value store: looks for a key in a set of four, and sends key and value. */
__handler__ void get_ph(handler_args_t *args) {
    task_t *task = args->task;
    volatile uint32_t *request = task->pkt_mem, key = request[0];
    volatile uint32_t *set = (volatile uint32_t *)task->handler_mem + key % 64 * 8;
    uint32_t way = 0;
    while (way < 3 && set[way] != key)
        way++;
    request[1] = set[4 + way];
    spin_cmd_t answer;
    spin_send_packet((void *)request, 64, &answer);
    spin_cmd_wait(answer);
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem) {
    *hh = NULL;
    *ph = spin_ph;
    *th = NULL;
    *handler_mem = NULL;
}
