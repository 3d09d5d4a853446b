/* SPDX-License-Identifier: Apache-2.0 */
/* Driver for programs that need only packets: reads options, finds handlers, generates packets or reads them from a
 * trace, and runs the simulation. Functions return GDRIVER_OK, or GDRIVER_ERR after a message.
 *
 *   -m, --num-messages N    messages of each execution context (1)
 *   -p, --num-packets N     packets of each message (32)
 *   -s, --packet-size N     bytes of each packet (1024)
 *   -d, --packet-delay N    cycles from a packet to the next of its message (20)
 *   -l, --message-delay N   cycles from the last packet of a message to the first of the next (40)
 *   -t, --trace-file FILE   packets of this file instead; NULL is none
 *
 * A trace begins with `sources lines largest`: the number of sources, of the lines that follow, and bytes of the
 * largest packet. A line `source destination bytes 0 message last` is a packet; `0 0 0 cycles 0 0` delays the next
 * packet by `cycles` cycles. */
#ifndef GDRIVER_H
#define GDRIVER_H

#include <stdint.h>
#include <stdlib.h>

#define GDRIVER_OK 0
#define GDRIVER_ERR 1

/* Limits: execution contexts of a simulation; characters of the matching text of a source, with the final 0. */
#define GDRIVER_MAX_ECTX 2
#define GDRIVER_MATCHING_CTX_MAXSIZE 256

/* Memory divided equally among the execution contexts, in order. Scratchpad addresses are relative to the start of each
 * context's part. */
#define GDRIVER_L2_ADDR 0x1c300000
#define GDRIVER_L2_SIZE (1024 * 1024)
#define GDRIVER_HOST_ADDR ((uint64_t)1 << 60)
#define GDRIVER_HOST_SIZE (1024 * 1024 * 1024)
#define GDRIVER_SCRATCHPAD_SIZE (800 * 1024)

/* Fills in a packet. Messages have numbers from 0, over all contexts; packets have numbers from 0 in each message, and
 * are 0 in a trace. `packet` has room for `size` zero bytes. Returns the length of the packet, at most `size`. `in_l1`
 * is the number of bytes copied to L1; the default is the length. */
typedef uint32_t (*fill_packet_fun_t)(uint32_t message, uint32_t index, uint8_t *packet, uint32_t size,
                                      uint32_t *in_l1);

/* Returns non-zero if packets from `source`, a word of the trace, belong to the context with this `matching_ctx`. */
typedef int (*match_packet_fun_t)(char *source, char *matching_ctx);

/* Reads the options and starts the simulation. `match` is required with a trace. `ectx_num` receives
 * GDRIVER_MAX_ECTX. */
int gdriver_init(int argc, char **argv, match_packet_fun_t match, int *ectx_num);

/* Adds an execution context with these functions of the program `hfile`; a name may be NULL. Without `fill`, packets
 * have only an IP and a UDP header. The image, if any, is the initial handler memory; it must stay valid until
 * gdriver_run. */
int gdriver_add_ectx(const char *hfile, const char *hh, const char *ph, const char *th, fill_packet_fun_t fill,
                     void *l2_img, size_t l2_img_size, void *matching_ctx, size_t matching_ctx_size);

/* Generates all packets, and runs until they are done. */
int gdriver_run(void);

/* Ends the simulation. It is an error if packets are unfinished. */
int gdriver_fini(void);

#endif
