/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that have arrived, and lists of those without a receive. */
#ifndef OFI_ARRIVAL_H
#define OFI_ARRIVAL_H

#include "../base/card.h"

/* Kinds of messages: without a tag (fi_msg(3)) and with one (fi_tagged(3)). */
enum kind { MESSAGE, TAGGED, KINDS };

struct buffer;

/* A message that has arrived. */
struct arrival {
    struct arrival *next;
    ptl_process_t source;
    uint64_t tag;
    uint64_t header; /* hdr_data */
    uint64_t offset; /* offset of the put */
    unsigned char *start;
    size_t length;         /* bytes at `start` */
    struct buffer *buffer; /* bounce buffer that holds them, or NULL */
    void *claimed;         /* context of the search that has claimed it */
};

/* Messages in the order of their arrival. `end` is the link for the next one. */
struct arrival_list {
    struct arrival *first, **end;
};

/* Matching criteria of a receive or a search. */
struct pattern {
    ptl_process_t source; /* PTL_NID_ANY: any source */
    unsigned number;      /* number of the source's endpoint */
    uint64_t tag, ignore; /* tag bits that are set in `ignore` do not count */
};

/* Returns the message of a PUT or PUT_OVERFLOW event. The caller sets `buffer`. */
struct arrival spin_ofi_arrival_of(const ptl_event_t *event);
/* Returns the bytes of the whole message, which may be long and not here yet. */
size_t spin_ofi_arrival_total(const struct arrival *arrival);
bool spin_ofi_arrival_matches(const struct arrival *arrival, const struct pattern *pattern);

/* Initializes an empty list. */
void spin_ofi_arrivals_init(struct arrival_list *list);
/* Appends a copy of a message. Returns it, or NULL without memory. */
struct arrival *spin_ofi_arrivals_append(struct arrival_list *list, const struct arrival *arrival);
/* Returns the first message that matches and stays in the list, or NULL. */
struct arrival *spin_ofi_arrivals_find(const struct arrival_list *list, const struct pattern *pattern);
/* Removes a message from the list. The caller owns it, and frees it. */
void spin_ofi_arrivals_remove(struct arrival_list *list, struct arrival *arrival);
/* Inserts a message at the beginning of the list, which owns it. */
void spin_ofi_arrivals_prepend(struct arrival_list *list, struct arrival *arrival);
/* Frees all messages. */
void spin_ofi_arrivals_release(struct arrival_list *list);

#endif
