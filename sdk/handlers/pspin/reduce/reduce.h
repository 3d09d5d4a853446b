/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions shared by handlers and host. */
#ifndef REDUCE_H
#define REDUCE_H

#include <stdint.h>

/* Limit of words in a packet. */
#define REDUCE_WORDS 2048

/* Contents of handler memory. */
struct reduce {
    uint32_t messages_left; /* unfinished messages */
    uint32_t words;         /* words of the result */
};

/* Offset of a cluster's sums in host memory; the word at 0 is the completion notice. */
#define REDUCE_PART(cluster) (64 + (cluster) * REDUCE_WORDS * 4)

#endif
