/* What the handlers and the host agree on. */
#ifndef REDUCE_H
#define REDUCE_H

#include <stdint.h>

/* Most words of a packet. */
#define REDUCE_WORDS 2048

/* The content of handler memory. */
struct reduce {
    uint32_t messages_left; /* that have not ended */
    uint32_t words;         /* of the result */
};

/* Where the sums of a cluster are in host memory; at 0 is the word that tells that they are there. */
#define REDUCE_PART(cluster) (64 + (cluster) * REDUCE_WORDS * 4)

#endif
