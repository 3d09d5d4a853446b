/* SPDX-License-Identifier: Apache-2.0 */
/* A completion queue without memory returns -FI_ENOMEM, and does not end the program. */
#include "transfers.h"

extern void *__libc_malloc(size_t size);
static size_t most = SIZE_MAX; /* bytes of the largest allocation that succeeds */

/* Replaces malloc of all libraries in this process. */
void *malloc(size_t size) {
    if (size <= most)
        return __libc_malloc(size);
    errno = ENOMEM;
    return NULL;
}

/* The queue has room for 64 completions at first, and then doubles it. */
enum { FIRST_ROOM = 64, SENDS = FIRST_ROOM + 8, TOO_LARGE = 1 << 13 };

static ssize_t send_one(size_t i) {
    static unsigned char byte;
    return post_send(net.ep, TAGGED, SEND, &byte, 1, net.peers[0], i, 0, NULL);
}

GROUP(memory) {
    struct fi_cq_tagged_entry entry;
    open_net(&(struct wish){0});
    EQUAL("send", send_one(0), 0);
    most = TOO_LARGE;
    for (size_t i = 1; i < SENDS; i++)
        EQUAL("send", send_one(i), 0);
    most = SIZE_MAX;
    for (size_t i = 0; i < FIRST_ROOM; i++)
        EQUAL("completion before the loss", ON(net.tx, ops, read, &entry, 1), 1);
    EQUAL("a completion is lost", ON(net.tx, ops, read, &entry, 1), -ENOMEM);
    EQUAL("the queue stays failed", ON(net.tx, ops, sread, &entry, 1, NULL, 1), -ENOMEM);
    EQUAL("the loss is no completion with an error", ON(net.tx, ops, readerr, &(struct fi_cq_err_entry){0}, 0),
          -EAGAIN);
    EQUAL("sends still work", send_one(SENDS), 0);
    EQUAL("later completions do not hide the loss", ON(net.tx, ops, read, &entry, 1), -ENOMEM);
    close_net();
}
