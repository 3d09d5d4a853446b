/* SPDX-License-Identifier: Apache-2.0 */
/* Constants shared by handlers and host. */
#ifndef AGGREGATE_H
#define AGGREGATE_H

/* Messages in flight at once: a message has the word of its number modulo this. */
#define AGGREGATE_MESSAGES 1024

/* Offset of a message's sum in host memory. */
#define AGGREGATE_RESULT(message) ((message) * 8)

#endif
