/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the handlers of a folder on this computer instead of the card (PsPIN §IV-C2, "RISC-V vs x86 vs ARM"): all
 * packets are in memory, and threads, each on a separate core if possible, process the packets in turn. The driver of
 * the folder makes the packets and checks the results as with the simulated card. It is compiled with the handlers and
 * this file:
 *
 *     gcc -std=gnu11 -O3 -march=native -rdynamic -pthread -Ihost -Icommon -Igeneric_driver -I$PSPIN_RT/runtime/include
 *         -I$PSPIN_HW/verilator_model/include NAME/handlers/NAME.c NAME/driver/driver.c host/measure.c -o NAME_host -ldl
 *     ./NAME_host [OPTIONS OF THE DRIVER] [--threads N] [--json FILE]
 *
 * It reports the time of each payload handler, and for all of them together the counters of the core where the system
 * allows it. Completion handlers run, too, but are not measured. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gdriver.h"
#include "handler.h"
#include "pspinsim.h"

/* Effect of a command: data written to the host, or a packet. */
struct command {
    struct command *before;
    uint64_t address;
    uint32_t length;
    bool is_packet;
    uint8_t data[];
};

struct packet {
    uint8_t *bytes;
    uint32_t length, message;
    double ns;
};

struct message {
    uint32_t left;
};

/* Counters of the core, in the order of output. */
static const struct {
    const char *name;
    uint32_t type;
    uint64_t config;
} counters[] = {
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"l1_misses", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_RESULT_MISS << 16},
};
#define COUNTERS (sizeof counters / sizeof *counters)

struct thread {
    pthread_t thread;
    uint32_t number;
    uint64_t counted[COUNTERS];
    bool is_counted[COUNTERS];
    struct command *last;
    uint8_t *room; /* memory for the data of commands, touched before the handlers run */
    size_t used, size;
};

static struct {
    uint32_t messages, packets, size, threads;
    const char *json;
    fill_packet_fun_t fill;
    handler_fn payload, completion;
    void *memory, *scratchpads[NB_CLUSTERS];
    size_t memory_size;
    struct packet *all;
    struct message *ends;
    struct thread *workers;
    pthread_barrier_t start;
    pkt_out_cb_t packet_out;
    pcie_slv_write_cb_t host_write;
    pcie_slv_read_cb_t host_read;
} run = {.messages = 1, .packets = 32, .size = 1024, .threads = 1};

static __thread struct thread *self;

static int fail(const char *what) {
    fprintf(stderr, "measure: %s\n", what);
    return GDRIVER_ERR;
}

static void *memory(size_t bytes) {
    /* Whole pages, touched before the handlers run. */
    void *start = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096 + 4096);
    if (start == NULL)
        exit(fail("no memory"));
    return memset(start, 0, (bytes + 4095) / 4096 * 4096 + 4096);
}

int pspinsim_cb_set_pkt_out(pkt_out_cb_t cb) { return run.packet_out = cb, SPIN_SUCCESS; }
int pspinsim_cb_set_pcie_slv_write(pcie_slv_write_cb_t cb) { return run.host_write = cb, SPIN_SUCCESS; }
int pspinsim_cb_set_pcie_slv_read(pcie_slv_read_cb_t cb) { return run.host_read = cb, SPIN_SUCCESS; }

/* Copies `data`: the cost of the command here. */
static void keep(uint64_t address, const void *data, uint32_t length, bool is_packet) {
    size_t bytes = (sizeof(struct command) + length + 63) / 64 * 64;
    if (self->used + bytes > self->size)
        exit(fail("handlers give more commands than expected"));
    struct command *command = (struct command *)(self->room + self->used);
    self->used += bytes;
    *command = (struct command){self->last, address, length, is_packet};
    memcpy(command->data, data, length);
    self->last = command;
}

int spin_send_packet(void *data, uint32_t length, spin_cmd_t *handle) {
    (void)handle;
    keep(0, data, length, true);
    return SPIN_OK;
}

int spin_dma_to_host(uint64_t host, uintptr_t nic, uint32_t length, bool event, spin_cmd_t *handle) {
    (void)event;
    (void)handle;
    keep(host, (const void *)nic, length, false);
    return SPIN_OK;
}

int spin_dma_from_host(uint64_t host, uintptr_t nic, uint32_t length, bool event, spin_cmd_t *handle) {
    (void)event;
    (void)handle;
    run.host_read(host, (uint8_t *)nic, length);
    return SPIN_OK;
}

int spin_write_to_host(uint64_t host, uint64_t data, spin_cmd_t *handle) {
    (void)handle;
    keep(host, &data, sizeof data, false);
    return SPIN_OK;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Returns the time of a measurement itself: the minimum of many. */
static double overhead(void) {
    double least = 1e9;
    for (int turn = 0; turn < 10000; turn++) {
        double start = now(), end = now();
        if (end - start < least)
            least = end - start;
    }
    return least;
}

static int open_counter(size_t which) {
    struct perf_event_attr attributes = {
        .size = sizeof attributes,
        .type = counters[which].type,
        .config = counters[which].config,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
}

static void *work(void *argument) {
    self = argument;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(self->number % (uint32_t)sysconf(_SC_NPROCESSORS_ONLN), &cores);
    pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
    int files[COUNTERS];
    for (size_t which = 0; which < COUNTERS; which++)
        files[which] = open_counter(which);
    task_t task = {
        .handler_mem = run.memory,
        .handler_mem_size = run.memory_size,
        .host_mem_high = (uint32_t)(GDRIVER_HOST_ADDR >> 32),
        .host_mem_low = (uint32_t)GDRIVER_HOST_ADDR,
        .host_mem_size = GDRIVER_HOST_SIZE,
    };
    for (uint32_t cluster = 0; cluster < NB_CLUSTERS; cluster++) {
        task.scratchpad[cluster] = run.scratchpads[cluster];
        task.scratchpad_size[cluster] = GDRIVER_SCRATCHPAD_SIZE;
    }
    handler_args_t args = {.task = &task, .hpu_gid = self->number, .hpu_id = self->number};
    pthread_barrier_wait(&run.start);
    for (size_t which = 0; which < COUNTERS; which++)
        ioctl(files[which], PERF_EVENT_IOC_ENABLE, 0);
    for (uint32_t at = self->number; at < run.messages * run.packets; at += run.threads) {
        struct packet *packet = &run.all[at];
        task.pkt_mem = task.l2_pkt_mem = packet->bytes;
        task.pkt_mem_size = packet->length;
        task.flow_id = packet->message;
        double start = now();
        run.payload(&args);
        packet->ns = now() - start;
        if (__atomic_sub_fetch(&run.ends[packet->message].left, 1, __ATOMIC_SEQ_CST) == 0 && run.completion)
            run.completion(&args);
    }
    for (size_t which = 0; which < COUNTERS; which++) {
        ioctl(files[which], PERF_EVENT_IOC_DISABLE, 0);
        uint64_t *value = &self->counted[which];
        self->is_counted[which] = read(files[which], value, sizeof *value) == sizeof *value;
        if (files[which] >= 0)
            close(files[which]);
    }
    return NULL;
}

static int take_number(char **word, uint32_t *value) {
    char *end;
    unsigned long read = word[1] ? strtoul(word[1], &end, 0) : 0;
    if (word[1] == NULL || *end != '\0' || end == word[1] || read > INT32_MAX)
        return fail("an option needs a number");
    *value = (uint32_t)read;
    return GDRIVER_OK;
}

int gdriver_init(int argc, char **argv, match_packet_fun_t match, int *ectx_num) {
    (void)match;
    *ectx_num = 1;
    for (int at = 1; at < argc; at += 2) {
        uint32_t ignored, *value = NULL;
        if (!strcmp(argv[at], "-m") || !strcmp(argv[at], "--num-messages"))
            value = &run.messages;
        else if (!strcmp(argv[at], "-p") || !strcmp(argv[at], "--num-packets"))
            value = &run.packets;
        else if (!strcmp(argv[at], "-s") || !strcmp(argv[at], "--packet-size"))
            value = &run.size;
        else if (!strcmp(argv[at], "--threads"))
            value = &run.threads;
        else if (!strcmp(argv[at], "-d") || !strcmp(argv[at], "-l"))
            value = &ignored;
        else if (!strcmp(argv[at], "--json") && argv[at + 1])
            run.json = argv[at + 1];
        else
            return fail("the options are -m, -p, -s, --threads with a number, and --json with a file");
        if (value != NULL && take_number(&argv[at], value) != GDRIVER_OK)
            return GDRIVER_ERR;
    }
    return run.threads ? GDRIVER_OK : fail("no threads");
}

int gdriver_add_ectx(const char *hfile, const char *hh, const char *ph, const char *th, fill_packet_fun_t fill,
                     void *l2_img, size_t l2_img_size, void *matching_ctx, size_t matching_ctx_size) {
    (void)hfile;
    (void)hh;
    (void)matching_ctx;
    (void)matching_ctx_size;
    run.fill = fill;
    *(void **)&run.payload = ph ? dlsym(RTLD_DEFAULT, ph) : NULL;
    *(void **)&run.completion = th ? dlsym(RTLD_DEFAULT, th) : NULL;
    if (run.payload == NULL)
        return fail("the program has no payload handler: it must be linked with -rdynamic");
    run.memory_size = GDRIVER_L2_SIZE;
    run.memory = memory(run.memory_size);
    if (l2_img != NULL)
        memcpy(run.memory, l2_img, l2_img_size);
    for (uint32_t cluster = 0; cluster < NB_CLUSTERS; cluster++)
        run.scratchpads[cluster] = memory(GDRIVER_SCRATCHPAD_SIZE);
    return GDRIVER_OK;
}

/* Passes packets and data of the handlers to the driver, in order. */
static void deliver(struct command *last) {
    struct command *first = NULL;
    while (last != NULL) {
        struct command *before = last->before;
        last->before = first;
        first = last;
        last = before;
    }
    for (; first != NULL; first = first->before) {
        if (first->is_packet)
            run.packet_out(first->data, first->length);
        else
            run.host_write(first->address, first->data, first->length);
    }
}

int gdriver_run(void) {
    uint32_t count = run.messages * run.packets;
    run.all = memory(count * sizeof *run.all);
    run.ends = memory(run.messages * sizeof *run.ends);
    for (uint32_t at = 0; at < count; at++) {
        struct packet *packet = &run.all[at];
        uint32_t in_l1;
        packet->message = at / run.packets;
        packet->bytes = memory(run.size);
        packet->length = run.fill(packet->message, at % run.packets, packet->bytes, run.size, &in_l1);
        run.ends[packet->message].left++;
    }
    run.workers = memory(run.threads * sizeof *run.workers);
    pthread_barrier_init(&run.start, NULL, run.threads);
    for (uint32_t number = 0; number < run.threads; number++) {
        struct thread *worker = &run.workers[number];
        worker->number = number;
        /* Limit of a handler's output in these folders: a packet in parts of 256 bytes with their records, and the
         * results of a completion handler. */
        worker->size = (size_t)(count / run.threads + 1) * (run.size + run.size / 256 * 128 + 512) + (1 << 20);
        worker->room = memory(worker->size);
        if (pthread_create(&worker->thread, NULL, work, worker) != 0)
            return fail("no thread");
    }
    for (uint32_t number = 0; number < run.threads; number++)
        pthread_join(run.workers[number].thread, NULL);
    for (uint32_t number = 0; number < run.threads; number++)
        deliver(run.workers[number].last);
    return GDRIVER_OK;
}

static int in_order(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

int gdriver_fini(void) {
    uint32_t count = run.messages * run.packets;
    double *times = memory(count * sizeof *times), least = overhead(), sum = 0;
    uint64_t bytes = 0;
    for (uint32_t at = 0; at < count; at++) {
        times[at] = run.all[at].ns > least ? run.all[at].ns - least : 0;
        sum += times[at];
        bytes += run.all[at].length;
    }
    qsort(times, count, sizeof *times, in_order);
    FILE *file = run.json ? fopen(run.json, "w") : stdout;
    if (file == NULL)
        return fail("the file of --json cannot be written");
    fprintf(file,
            "{\"threads\": %u, \"packets\": %u, \"bytes\": %llu, \"ns\": {\"min\": %.1f, \"q1\": %.1f, "
            "\"median\": %.1f, \"q3\": %.1f, \"max\": %.1f, \"mean\": %.1f}",
            run.threads, count, (unsigned long long)bytes, times[0], times[count / 4], times[count / 2],
            times[count - 1 - count / 4], times[count - 1], sum / count);
    for (size_t which = 0; which < COUNTERS; which++) {
        uint64_t counted = 0;
        bool is_counted = true;
        for (uint32_t number = 0; number < run.threads; number++) {
            counted += run.workers[number].counted[which];
            is_counted = is_counted && run.workers[number].is_counted[which];
        }
        if (is_counted)
            fprintf(file, ", \"%s\": %llu", counters[which].name, (unsigned long long)counted);
        else
            fprintf(file, ", \"%s\": null", counters[which].name);
    }
    fprintf(file, "}\n");
    free(times);
    return file == stdout || fclose(file) == 0 ? GDRIVER_OK : fail("the file of --json cannot be written");
}
