/* What the handlers and the host agree on. */
#ifndef AGGREGATE_H
#define AGGREGATE_H

/* Messages that can be under way at once: a message has the word of its number modulo this. */
#define AGGREGATE_MESSAGES 1024

/* Where the sum of a message is in host memory. */
#define AGGREGATE_RESULT(message) ((message) * 8)

#endif
