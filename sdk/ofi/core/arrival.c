/* SPDX-License-Identifier: Apache-2.0 */
#include "arrival.h"

#include <stdlib.h>

struct arrival spin_ofi_arrival_of(const ptl_event_t *event) {
    return (struct arrival){.source = event->initiator,
                            .tag = event->match_bits,
                            .header = event->hdr_data,
                            .offset = event->remote_offset,
                            .start = event->start,
                            .length = event->mlength};
}

size_t spin_ofi_arrival_total(const struct arrival *arrival) {
    return arrival->header & HEADER_IS_LONG ? LONG_TOTAL(arrival->offset) : arrival->length;
}

bool spin_ofi_arrival_matches(const struct arrival *arrival, const struct pattern *pattern) {
    const ptl_process_t source = pattern->source;
    bool same_source = source.phys.nid == PTL_NID_ANY ||
                       (source.phys.nid == arrival->source.phys.nid && source.phys.pid == arrival->source.phys.pid &&
                        pattern->number == HEADER_NUMBER(arrival->header));
    return same_source && ((pattern->tag ^ arrival->tag) & ~pattern->ignore) == 0;
}

void spin_ofi_arrivals_init(struct arrival_list *list) {
    list->first = NULL;
    list->end = &list->first;
}

struct arrival *spin_ofi_arrivals_append(struct arrival_list *list, const struct arrival *arrival) {
    struct arrival *copy = malloc(sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *arrival;
    copy->next = NULL;
    *list->end = copy;
    list->end = &copy->next;
    return copy;
}

struct arrival *spin_ofi_arrivals_find(const struct arrival_list *list, const struct pattern *pattern) {
    struct arrival *arrival = list->first;
    while (arrival && !spin_ofi_arrival_matches(arrival, pattern))
        arrival = arrival->next;
    return arrival;
}

void spin_ofi_arrivals_remove(struct arrival_list *list, struct arrival *arrival) {
    struct arrival **at = &list->first;
    while (*at != arrival)
        at = &(*at)->next;
    *at = arrival->next;
    if (list->end == &arrival->next)
        list->end = at;
}

void spin_ofi_arrivals_prepend(struct arrival_list *list, struct arrival *arrival) {
    if (!list->first)
        list->end = &arrival->next;
    arrival->next = list->first;
    list->first = arrival;
}

void spin_ofi_arrivals_release(struct arrival_list *list) {
    for (struct arrival *next, *arrival = list->first; arrival; arrival = next) {
        next = arrival->next;
        free(arrival);
    }
    spin_ofi_arrivals_init(list);
}
