/* What the handlers and the host agree on. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

/* Values are 0 to 1,024. */
#define HISTOGRAM_VALUES 1025
/* The table of a cluster has a counter for each number of so many bits, whatever a packet contains. */
#define HISTOGRAM_BITS 11
#define HISTOGRAM_TABLE_BYTES (4 << HISTOGRAM_BITS)

/* The content of handler memory. */
struct histogram {
    uint32_t messages_left; /* that have not ended */
};

/* Where the table of a cluster is in host memory; at 0 is the word that tells that they are there. */
#define HISTOGRAM_PART(cluster) (64 + (cluster) * HISTOGRAM_VALUES * 4)

#endif
