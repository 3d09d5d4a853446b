/* SPDX-License-Identifier: Apache-2.0 */
/* Memory shared by a live card (crates/live/native) and the process of its handlers. crates/live/native/src/layout.rs has the
 * same structures; both sides assert their sizes. */
#ifndef NATIVE_CARD_H
#define NATIVE_CARD_H

#include <stdint.h>

/* Addresses in the handlers' process; the other memories have those of the unit (abi::pspin::map). */
#define NATIVE_CONTROL 0x30000000u
#define NATIVE_L1_PACKETS 0x18000000u /* packet of each HPU */
#define NATIVE_L1_PACKET 0x4000u
#define NATIVE_THREADS 0x20000000u /* a window for each HPU, see native.h */
#define NATIVE_HOST 0x40000000u

/* Open files of the process: the memory of its context, the port, the card's bell, and static data. */
#define NATIVE_FILE_CONTEXT 3
#define NATIVE_FILE_PORT 4
#define NATIVE_FILE_BELL 5
#define NATIVE_FILE_DATA 6

#define NATIVE_RING 512 /* a power of two, at least the number of slots */
#define NATIVE_REGIONS 16
#define NATIVE_OUTPUT 4096

/* Memory that the process maps at its start. */
struct native_region {
    uint64_t address, bytes, offset, file;
};

struct native_control {
    /* The card writes `tail`, HPUs take tasks at `head`. */
    uint32_t tail;
    uint32_t pad0[15];
    uint32_t head;
    uint32_t pad1[15];
    /* HPUs sleep on `wake`; the bell rings at the end of a task while `wants_bell` is set. */
    uint32_t wake, sleepers, wants_bell, ready, terminated;
    uint32_t pad2[11];
    uint32_t bytes;                        /* of this region, with everything behind this structure */
    uint32_t hpus, hpus_per_cluster, spin; /* spin: ticks for which an idle HPU looks for work */
    uint32_t init;                         /* init_handlers, for the first context */
    uint32_t handler_memory, handler_memory_bytes;
    uint32_t scratchpads[4], scratchpad_bytes[4];
    uint32_t data, data_bytes; /* static data */
    uint64_t host, host_bytes; /* PCIe address of the host memory, which is at NATIVE_HOST here */
    uint32_t regions_count, pad3;
    struct native_region regions[NATIVE_REGIONS];
};
_Static_assert(sizeof(struct native_control) == 800, "layout.rs");

/* Results of a handler. */
enum native_outcome {
    NATIVE_DONE,
    NATIVE_SKIPPED,
    NATIVE_SIGNAL,      /* code: the signal; address: of the access */
    NATIVE_SYSTEM_CALL, /* code: the call's number */
    NATIVE_WATCHDOG,
    NATIVE_COMMAND,  /* address and bytes: of a command's source or destination */
    NATIVE_HOST_MEM, /* address: of the host memory that a command uses */
    NATIVE_REPORTED, /* code: of the program */
};

struct native_result {
    uint32_t outcome, pc, code, bytes;
    uint64_t address, start, end; /* time-stamp counter */
};

/* Packet with the handlers that an HPU runs on it, one after the other. */
struct native_slot {
    uint32_t packet, size, transfer, flow;
    uint32_t handlers[3], home;
    uint32_t is_done, hpu;
    struct native_result results[3];
    uint32_t pad[8];
};
_Static_assert(sizeof(struct native_slot) == 192, "layout.rs");

/* HPU as the card sees it. */
struct native_shared {
    uint32_t thread, sequence, killed, lost;
    uint64_t since; /* time-stamp counter at the start of the running handler, 0 if none */
    uint64_t sent, sent_bytes, unsent, puts;
    uint64_t to_host, to_host_bytes, from_host, from_host_bytes, host_direct;
    uint32_t written, read; /* bytes of output so far, and those that the card has taken */
    uint8_t pad[4096 - 104];
    uint8_t output[NATIVE_OUTPUT];
};
_Static_assert(sizeof(struct native_shared) == 8192, "layout.rs");

/* Places behind the control structure. */
#define NATIVE_AT_RING 4096u
#define NATIVE_AT_SLOTS 8192u
#define NATIVE_AT_HPUS 0x20000u

#endif
