/* SPDX-License-Identifier: Apache-2.0 */
/* Manual progress (FI_PROGRESS_MANUAL of fi_domain(3)), and waits. */
#include "../rx/unexpected.h"
#include "fi.h"

/* Moves all messages without a receive from the card's list to the CPU's. */
static void drain(struct endpoint *ep) {
    do {
        if (spin_ofi_drain_next(ep) != PTL_OK)
            return;
        /* The message may still be landing. */
        while (!ep->drain.answered) {
            /* The answer may be among lost events. */
            if (ep->domain->card.pump.failure)
                return;
            spin_ofi_pump_one(&ep->domain->card.pump);
        }
    } while (ep->drain.more);
}

/* Drains endpoints whose peers have asked for credit, and returns it to these peers. */
static void answer(struct domain *domain) {
    while (domain->asked) {
        struct endpoint *ep = domain->asked;
        domain->asked = ep->next_asked;
        ep->is_asked = false;
        drain(ep);
        spin_ofi_credit_answer(ep);
    }
}

void spin_ofi_progress(struct domain *domain) {
    const int before = spin_ofi_defer_begin(&domain->card);
    spin_ofi_pump_all(&domain->card.pump);
    answer(domain);
    spin_ofi_defer_end(before);
}

void spin_ofi_idle(struct domain *domain) {
    pthread_mutex_lock(&domain->lock);
    const int before = spin_ofi_defer_begin(&domain->card);
    /* Programs may read registered memory without a call. */
    const bool memory_counts = domain->card.regions > 0;
    pthread_mutex_unlock(&domain->lock);
    if (memory_counts)
        spin_idle();
    else
        spin_idle_events();
    spin_ofi_defer_end(before);
}

enum { PS_PER_MS = 1000 * 1000 * 1000 };

uint64_t spin_ofi_wait_end(int milliseconds) {
    return milliseconds < 0 ? FOREVER : spin_time_ps() + (uint64_t)milliseconds * PS_PER_MS;
}

bool spin_ofi_await(struct domain *domain, uint64_t end) {
    ptl_event_t event;
    unsigned which;
    if (end == FOREVER) {
        spin_ofi_idle(domain);
        return true;
    }
    const uint64_t now = spin_time_ps();
    if (now >= end)
        return false;
    const ptl_time_t rest = (ptl_time_t)((end - now + PS_PER_MS - 1) / PS_PER_MS);
    const int rc = PtlEQPoll(&domain->card.pump.eq, 1, rest, &event, &which);
    if (rc == PTL_EQ_EMPTY)
        return false;
    pthread_mutex_lock(&domain->lock);
    if (spin_ofi_pump_check(&domain->card.pump, rc))
        spin_ofi_pump_handle(&domain->card.pump, &event);
    spin_ofi_progress(domain);
    pthread_mutex_unlock(&domain->lock);
    return true;
}
