/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions shared by handlers and host. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

/* Values are 0 to 1,024. */
#define HISTOGRAM_VALUES 1025
/* The table of a cluster has a counter for each number of this many bits, whatever a packet contains. */
#define HISTOGRAM_BITS 11
#define HISTOGRAM_TABLE_BYTES (4 << HISTOGRAM_BITS)

/* Contents of handler memory. */
struct histogram {
    uint32_t messages_left; /* unfinished messages */
};

/* Offset of a cluster's table in host memory; the word at 0 is the completion notice. */
#define HISTOGRAM_PART(cluster) (64 + (cluster) * HISTOGRAM_VALUES * 4)

#endif
