/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "gdriver.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "packets.h"
#include "pspinsim.h"
#include "spin.h"

/* Program as written by `make deploy`. */
#define IMAGES "build/slm_files/"

typedef struct ectx {
    spin_ec_t ec;
    fill_packet_fun_t fill;
    void *image;
    size_t image_size;
    char matching[GDRIVER_MATCHING_CTX_MAXSIZE];
} ectx_t;

static struct {
    uint32_t messages, packets, size, packet_delay, message_delay;
    const char *trace;
    match_packet_fun_t match;
    ectx_t ectx[GDRIVER_MAX_ECTX];
    int ectx_count;
    uint64_t sent, done;
} driver;

static const char usage[] =
    "usage: %s [OPTION]...\n"
    "  -m, --num-messages N    messages of each execution context (1)\n"
    "  -p, --num-packets N     packets of each message (32)\n"
    "  -s, --packet-size N     bytes of each packet (1024)\n"
    "  -d, --packet-delay N    cycles from a packet to the next of its message (20)\n"
    "  -l, --message-delay N   cycles from the last packet of a message to the first of the next (40)\n"
    "  -t, --trace-file FILE   packets of this file instead\n";

static int fail(const char *format, ...) {
    va_list values;
    va_start(values, format);
    fputs("gdriver: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    return GDRIVER_ERR;
}

static int number(const char *option, const char *text, uint32_t *value) {
    char *end;
    unsigned long long read = strtoull(text, &end, 0);
    if (end == text || *end != '\0' || *text == '-' || read > UINT32_MAX)
        return fail("--%s: %s is not a number from 0 to %u", option, text, UINT32_MAX);
    *value = (uint32_t)read;
    return GDRIVER_OK;
}

static int read_options(int argc, char **argv) {
    static const struct option options[] = {
        {"num-messages", required_argument, NULL, 'm'},
        {"num-packets", required_argument, NULL, 'p'},
        {"packet-size", required_argument, NULL, 's'},
        {"packet-delay", required_argument, NULL, 'd'},
        {"message-delay", required_argument, NULL, 'l'},
        {"trace-file", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;
    optind = 1;
    while ((option = getopt_long(argc, argv, "m:p:s:d:l:t:h", options, NULL)) != -1) {
        uint32_t *value = NULL;
        const char *name = "";
        for (const struct option *known = options; known->name != NULL; known++)
            if (known->val == option)
                name = known->name;
        switch (option) {
        case 'm': value = &driver.messages; break;
        case 'p': value = &driver.packets; break;
        case 's': value = &driver.size; break;
        case 'd': value = &driver.packet_delay; break;
        case 'l': value = &driver.message_delay; break;
        case 't': driver.trace = strcmp(optarg, "NULL") == 0 ? NULL : optarg; break;
        case 'h': printf(usage, argv[0]); exit(EXIT_SUCCESS);
        default: fprintf(stderr, usage, argv[0]); return GDRIVER_ERR;
        }
        if (value != NULL && number(name, optarg, value) != GDRIVER_OK)
            return GDRIVER_ERR;
    }
    if (optind < argc)
        return fail("%s is not an option", argv[optind]);
    return GDRIVER_OK;
}

static void count_done(uint64_t user, uint64_t nic_arrival, uint64_t pspin_arrival, uint64_t feedback) {
    (void)user;
    (void)nic_arrival;
    (void)pspin_arrival;
    (void)feedback;
    driver.done++;
}

int gdriver_init(int argc, char **argv, match_packet_fun_t match, int *ectx_num) {
    pspin_conf_t conf;
    memset(&driver, 0, sizeof driver);
    driver.messages = 1;
    driver.packets = 32;
    driver.size = 1024;
    driver.packet_delay = 20;
    driver.message_delay = 40;
    driver.match = match;
    *ectx_num = -1;
    if (read_options(argc, argv) != GDRIVER_OK)
        return GDRIVER_ERR;
    pspinsim_default_conf(&conf);
    conf.slm_files_path = IMAGES;
    if (pspinsim_init(argc, argv, &conf) != SPIN_SUCCESS)
        return GDRIVER_ERR;
    pspinsim_cb_set_pkt_feedback(count_done);
    *ectx_num = GDRIVER_MAX_ECTX;
    return GDRIVER_OK;
}

static int find(const char *file, const char *name, mem_addr_t *address, mem_size_t *size) {
    spin_nic_addr_t found = 0;
    size_t bytes = 0;
    if (name != NULL && spin_find_handler_by_name(file, name, &found, &bytes) != SPIN_SUCCESS)
        return GDRIVER_ERR;
    *address = found;
    *size = (mem_size_t)bytes;
    return GDRIVER_OK;
}

int gdriver_add_ectx(const char *hfile, const char *hh, const char *ph, const char *th, fill_packet_fun_t fill,
                     void *l2_img, size_t l2_img_size, void *matching_ctx, size_t matching_ctx_size) {
    if (driver.ectx_count == GDRIVER_MAX_ECTX)
        return fail("there are %d execution contexts already", GDRIVER_MAX_ECTX);
    if (hh == NULL && ph == NULL && th == NULL)
        return fail("an execution context needs a handler");
    if (matching_ctx_size > GDRIVER_MATCHING_CTX_MAXSIZE)
        return fail("a matching context has at most %d bytes", GDRIVER_MATCHING_CTX_MAXSIZE);
    ectx_t *ectx = &driver.ectx[driver.ectx_count];
    spin_ec_t ec;
    memset(&ec, 0, sizeof ec);
    mem_addr_t address[3];
    mem_size_t size[3];
    if (find(hfile, hh, &address[0], &size[0]) != GDRIVER_OK || find(hfile, ph, &address[1], &size[1]) != GDRIVER_OK ||
        find(hfile, th, &address[2], &size[2]) != GDRIVER_OK)
        return GDRIVER_ERR;
    ec.hh_addr = address[0];
    ec.hh_size = size[0];
    ec.ph_addr = address[1];
    ec.ph_size = size[1];
    ec.th_addr = address[2];
    ec.th_size = size[2];
    ectx->ec = ec;
    ectx->fill = fill;
    ectx->image = l2_img;
    ectx->image_size = l2_img == NULL ? 0 : l2_img_size;
    if (matching_ctx != NULL)
        memcpy(ectx->matching, matching_ctx, matching_ctx_size);
    driver.ectx_count++;
    return GDRIVER_OK;
}

/* Gives each context its part of the memories. */
static int divide(void) {
    uint32_t count = (uint32_t)driver.ectx_count;
    for (uint32_t index = 0; index < count; index++) {
        ectx_t *ectx = &driver.ectx[index];
        ectx->ec.handler_mem_size = GDRIVER_L2_SIZE / count;
        ectx->ec.handler_mem_addr = GDRIVER_L2_ADDR + index * ectx->ec.handler_mem_size;
        ectx->ec.host_mem_size = GDRIVER_HOST_SIZE / count;
        ectx->ec.host_mem_addr = GDRIVER_HOST_ADDR + (uint64_t)index * ectx->ec.host_mem_size;
        for (int cluster = 0; cluster < NUM_CLUSTERS; cluster++) {
            ectx->ec.scratchpad_size[cluster] = GDRIVER_SCRATCHPAD_SIZE / count;
            ectx->ec.scratchpad_addr[cluster] = index * ectx->ec.scratchpad_size[cluster];
        }
        if (ectx->image_size > ectx->ec.handler_mem_size)
            return fail("an image of %zu B for %u B of handler memory", ectx->image_size, ectx->ec.handler_mem_size);
        if (ectx->image_size > 0 &&
            spin_nicmem_write(ectx->ec.handler_mem_addr, ectx->image, ectx->image_size, NULL) != SPIN_SUCCESS)
            return GDRIVER_ERR;
    }
    return GDRIVER_OK;
}

/* Adds a packet of at most `size` bytes. */
static int add(ectx_t *ectx, uint32_t message, uint32_t index, uint32_t size, int is_last, uint32_t delay) {
    uint8_t *packet = calloc(size > sizeof(pkt_hdr_t) ? size : sizeof(pkt_hdr_t), 1);
    uint32_t length = size;
    uint32_t in_l1 = UINT32_MAX;
    if (packet == NULL)
        return fail("no memory for a packet of %u B", size);
    if (ectx->fill != NULL) {
        length = ectx->fill(message, index, packet, size, &in_l1);
    } else {
        pkt_hdr_t *header = (pkt_hdr_t *)packet;
        header->ip_hdr.version = 4;
        header->ip_hdr.ihl = 5;
        header->ip_hdr.length = (uint16_t)size;
        header->udp_hdr.length = (uint16_t)(size - sizeof(ip_hdr_t));
    }
    int result = GDRIVER_ERR;
    if (length > size)
        fail("a packet of %u B in %u B", length, size);
    else if (pspinsim_packet_add(&ectx->ec, message, packet, length, in_l1 < length ? in_l1 : length, is_last != 0,
                                 delay, 0) == SPIN_SUCCESS)
        result = GDRIVER_OK;
    driver.sent++;
    free(packet);
    return result;
}

static int generate(void) {
    uint32_t message = 0;
    for (int context = 0; context < driver.ectx_count; context++) {
        for (uint32_t own = 0; own < driver.messages; own++, message++) {
            for (uint32_t index = 0; index < driver.packets; index++) {
                int is_last = index + 1 == driver.packets;
                uint32_t delay = is_last ? driver.message_delay : driver.packet_delay;
                if (add(&driver.ectx[context], message, index, driver.size, is_last, delay) != GDRIVER_OK)
                    return GDRIVER_ERR;
            }
        }
    }
    return GDRIVER_OK;
}

/* Packet of the trace that waits until the delay of the next one is known. */
typedef struct waiting {
    ectx_t *ectx;
    uint32_t message, size, delay;
    int is_last;
} waiting_t;

static int flush(const waiting_t *packet) {
    if (packet->ectx == NULL)
        return GDRIVER_OK;
    return add(packet->ectx, packet->message, 0, packet->size, packet->is_last, packet->delay);
}

static ectx_t *context_of(char *source) {
    if (driver.match == NULL)
        return driver.ectx_count > 0 ? &driver.ectx[0] : NULL;
    for (int context = 0; context < driver.ectx_count; context++)
        if (driver.match(source, driver.ectx[context].matching))
            return &driver.ectx[context];
    return NULL;
}

static int read_lines(FILE *file) {
    uint32_t sources, lines, largest;
    waiting_t last = {.ectx = NULL};
    if (fscanf(file, "%u %u %u", &sources, &lines, &largest) != 3)
        return fail("%s: the first line must have three numbers", driver.trace);
    for (uint32_t line = 0; line < lines; line++) {
        char source[256], destination[256];
        uint32_t size, gap, message;
        int is_last;
        if (fscanf(file, "%255s %255s %u %u %u %d", source, destination, &size, &gap, &message, &is_last) != 6)
            return fail("%s: line %u must have two words and four numbers", driver.trace, line + 2);
        if (size == 0) {
            last.delay = gap;
            continue;
        }
        if (size > largest)
            return fail("%s: line %u has %u B, more than the %u B of the first line", driver.trace, line + 2, size,
                        largest);
        if (flush(&last) != GDRIVER_OK)
            return GDRIVER_ERR;
        last = (waiting_t){.ectx = context_of(source), .message = message, .size = size, .is_last = is_last};
        if (last.ectx == NULL)
            return fail("%s: line %u: no execution context matches %s", driver.trace, line + 2, source);
    }
    return flush(&last);
}

static int read_trace(void) {
    FILE *file = fopen(driver.trace, "r");
    if (file == NULL)
        return fail("%s cannot be read", driver.trace);
    int result = read_lines(file);
    fclose(file);
    return result;
}

int gdriver_run(void) {
    if (divide() != GDRIVER_OK)
        return GDRIVER_ERR;
    int result = driver.trace == NULL ? generate() : read_trace();
    pspinsim_packet_eos();
    if (result != GDRIVER_OK)
        return result;
    return pspinsim_run() == SPIN_SUCCESS ? GDRIVER_OK : GDRIVER_ERR;
}

int gdriver_fini(void) {
    if (pspinsim_fini() != SPIN_SUCCESS)
        return GDRIVER_ERR;
    if (driver.sent != driver.done)
        return fail("%llu packets were sent, but %llu were done", (unsigned long long)driver.sent,
                    (unsigned long long)driver.done);
    return GDRIVER_OK;
}
