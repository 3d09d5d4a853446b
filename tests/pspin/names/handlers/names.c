/* SPDX-License-Identifier: Apache-2.0 */
/* Every name of the card side of PsPIN's interface, used as published programs use it. */
#include <handler.h>
#include <packets.h>

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#if NB_CORES != 8 || NB_CLUSTERS != 4 || CORE_COUNT != 32 || NUM_CLUSTER_HPUS != 8 || PKT_SIZE != 1024
#error "sizes of spin_conf.h"
#endif

/* The layouts that programs rely on. */
_Static_assert(sizeof(task_t) == 72 && offsetof(task_t, pkt_mem) == 8 && offsetof(task_t, scratchpad) == 16, "task_t");
_Static_assert(offsetof(task_t, host_mem_high) == 48 && offsetof(task_t, l2_pkt_mem) == 60, "task_t");
_Static_assert(offsetof(task_t, home_cluster_id) == 64 && offsetof(task_t, flow_id) == 68, "task_t");
_Static_assert(sizeof(handler_args_t) == 16 && offsetof(handler_args_t, hpu_id) == 12, "handler_args_t");
_Static_assert(sizeof(ip_hdr_t) == 20 && sizeof(udp_hdr_t) == 8 && sizeof(pkt_hdr_t) == 28, "packets.h");
_Static_assert(offsetof(ip_hdr_t, length) == 2 && offsetof(ip_hdr_t, source_id) == 12, "ip_hdr_t");
_Static_assert(sizeof(spin_cmd_t) == 4 && sizeof(spin_lock_t) == 4 && sizeof(spin_rw_lock_t) == 8, "handles");
_Static_assert(HWSCHED_HANDLER_FUN_ADDR == 0x1B205000 && HWSCHED_HANDLER_FUN_SIZE == 0x1B205004, "registers");
_Static_assert(HWSCHED_DOORBELL == 0x1B205050 && HWSCHED_ERROR == 0x1B205054 && CMD_ISSUE == 0x1B205080, "registers");
_Static_assert(CMD_WAIT == 0x1B205084 && CMD_TEST == 0x1B205088 && CMD_INFO == 0x1B20508C, "registers");
_Static_assert(CMD_WORD0 == 0x1B205090 && CMD_WORD6 == 0x1B2050A8, "registers");

int answer(void);

volatile __attribute__((section(".l2_handler_data"))) uint8_t handler_mem[] = {0xDE, 0xAD, 0xBE, 0xEF};

static void commands(task_t *task, uint8_t *payload, uint32_t length) {
    spin_cmd_t command;
    bool is_done = false;
    uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
    int status = spin_send_packet(payload, length, &command);
    status |= spin_cmd_wait(command);
    status |= spin_rdma_put(1, payload, length, &command);
    do {
        status |= spin_cmd_test(command, &is_done);
    } while (!is_done);
    status |= spin_dma_to_host(host, (uint32_t)payload, length, 1, &command);
    status |= spin_dma_from_host(host, (uint32_t)payload, length, 0, &command);
    status |= spin_host_dma(host, (uint32_t)payload, NIC_TO_HOST, length, &command);
    status |= spin_host_dma(host, (uint32_t)payload, HOST_TO_NIC, length, &command);
    status |= spin_write_to_host(host, 0xcafebebe, &command);
    status |= spin_host_write(host, (uint64_t)1, false);
    ASSERT(status == SPIN_OK);
}

static void copies(task_t *task) {
    spin_dma_t transfer;
    uint32_t is_done;
    if (spin_dma(task->l2_pkt_mem, task->pkt_mem, 0, SPIN_DMA_EXT2LOC, 0, &transfer) != SPIN_FAIL)
        TERMINATE;
    spin_dma(task->l2_pkt_mem, task->scratchpad[rt_cluster_id()], 64, SPIN_DMA_EXT2LOC, 0, &transfer);
    spin_dma_wait(transfer);
    spin_dma(task->pkt_mem, task->handler_mem, 64, SPIN_DMA_LOC2EXT, 0, &transfer);
    spin_dma_test(transfer, &is_done);
}

static void atomics(volatile uint32_t *word, volatile int32_t *number, spin_rw_lock_t *rw) {
    amo_store(word, 1);
    uint32_t old = amo_swap(word, 2) + amo_and(word, 3) + amo_or(word, 4) + amo_xor(word, 5);
    old += amo_maxu(word, 6) + amo_minu(word, 7);
    int32_t signed_old = amo_add(number, 1) + amo_max(number, 2) + amo_min(number, -3);
    old += load_reserved(word) + store_conditional(word, 8);
    if (compare_and_swap(word, old, (uint32_t)signed_old) < 0)
        asm_mem_fence();
    spin_lock_t *lock = word;
    spin_lock_init(lock);
    if (spin_lock_try_lock(lock))
        spin_lock_unlock(lock);
    spin_lock_lock(lock);
    spin_lock_unlock(lock);
    spin_rw_lock_r_lock(rw);
    spin_rw_lock_r_unlock(rw);
    spin_rw_lock_w_lock(rw);
    rw->num_readers += (int32_t)rw->glock;
    spin_rw_lock_w_unlock(rw);
}

__handler__ void names_hh(handler_args_t *args) {
    task_t *task = args->task;
    atomics(task->scratchpad[0], task->scratchpad[1], task->scratchpad[2]);
    printf("%s: hpu %lu of %lu, cluster %lu\n", STRINGIFY(names_hh), (unsigned long)args->hpu_id,
           (unsigned long)args->hpu_gid, (unsigned long)args->cluster_id);
    SPIN_PRINTF("%d\n", (int)(MIN(1, 2) + MAX(3, 4) + DIV_CEIL(7, 2) + FAST_DIV(8, 1) + FAST_MOD(9, 4) + AND(6, 3)));
    DEBUG_PRINT("only with -DLOG\n");
    rt_time_wait_cycles(100);
}

__handler__ void names_ph(handler_args_t *args) {
    task_t *task = args->task;
    pkt_hdr_t *header = (pkt_hdr_t *)task->pkt_mem;
    uint32_t source = header->ip_hdr.source_id;
    header->ip_hdr.source_id = header->ip_hdr.dest_id;
    header->ip_hdr.dest_id = source;
    header->udp_hdr.dst_port ^= header->udp_hdr.src_port;
    uint8_t *payload;
    uint32_t length;
    GET_IP_UDP_PLD(task->pkt_mem, payload, length);
    commands(task, payload, MIN(length, task->pkt_mem_size));
    copies(task);
}

__handler__ void names_th(handler_args_t *args) {
    task_t *task = args->task;
    char *text = task->scratchpad[3];
    if (task->scratchpad_size[3] < 64 || task->handler_mem_size == 0 || task->host_mem_size == 0)
        abort();
    memset(text, answer(), 64);
    memcpy(text, (void *)handler_mem, sizeof(handler_mem));
    int order = strcmp(text, "b") + strncmp(text, "c", 1) + memcmp(text, "d", 1) + (int)strlen(text);
    float root = sqrtf((float)task->flow_id);
    errno = order / (int)(task->home_cluster_id + 1) + (int)root + (int)ALIGN_UP(rt_core_id(), 8);
    assert(errno >= 0);
    puts("done");
    putchar('\n');
}

void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr) {
    volatile handler_fn handlers[] = {names_hh, names_ph, names_th};
    *hh = handlers[0];
    *ph = handlers[1];
    *th = handlers[2];
    *handler_mem_ptr = (void *)handler_mem;
}
