/* Events of the card, and the operations that they complete. */
#include "../core/domain.h"

#include <stdlib.h>

/* ---- Calls that need no answer -------------------------------------------------------------------------------------------------- */

/* What the program reads before such a call is made is what it reads without deferring: buffers of messages belong to the provider until
 * they are complete, which only a call that waits can tell. Memory that is registered may be written by others at any time; programs may
 * look at it without a call. A deferred call must find room. */
int defer_begin(const struct domain *domain) {
    return spin_defer(!domain->regions && domain->appended < (unsigned)domain->limits.max_entries / 2 &&
                      domain->appended < (unsigned)domain->limits.max_list_size / 2);
}

void defer_end(int before) { spin_defer(before); }

ptl_handle_me_t handle_of(const ptl_handle_me_t *entry) {
    const volatile ptl_handle_me_t *handle = entry;
    const int before = spin_defer(0);
    /* A call that waits brings the handles of this thread's entries. Those of another one, which was the only thread at that time, come when
     * their time has passed. */
    if (*handle == PTL_INVALID_HANDLE)
        PtlAtomicSync();
    while (*handle == PTL_INVALID_HANDLE)
        spin_host_compute(100);
    defer_end(before);
    return *handle;
}

void idle(struct domain *domain) {
    pthread_mutex_lock(&domain->lock);
    const int before = defer_begin(domain);
    /* Programs may look at registered memory without a call. */
    const bool memory_counts = domain->regions != NULL;
    pthread_mutex_unlock(&domain->lock);
    if (memory_counts)
        spin_idle();
    else
        spin_idle_events();
    defer_end(before);
}

/* ---- Operations ---------------------------------------------------------------------------------------------------------------- */

struct operation *operation_new(struct endpoint *ep, enum job job, void *context, uint64_t flags, bool report) {
    struct domain *domain = ep->domain;
    struct operation *op = domain->free;
    if (op)
        domain->free = op->next;
    else if (!(op = malloc(sizeof *op)))
        return NULL;
    op->what = OPERATION;
    op->job = job;
    op->ep = ep;
    op->next = op->previous = NULL;
    op->list = NULL;
    op->context = context;
    op->flags = flags;
    op->report = report;
    op->md = PTL_INVALID_HANDLE;
    op->count = 0;
    op->length = 0;
    op->entry = PTL_INVALID_HANDLE;
    op->appended = false;
    op->header = 0;
    op->tag = 0;
    op->state = NO_STATE;
    op->awaited = 1;
    op->failure = PTL_NI_OK;
    op->multi = false;
    op->parent = NULL;
    op->used = op->children = 0;
    op->cancelled = false;
    return op;
}

bool operation_memory(struct operation *op, const struct iovec *iov, size_t count) {
    if (count > IOV_LIMIT)
        return false;
    op->count = (unsigned)count;
    op->length = 0;
    for (size_t i = 0; i < count; i++) {
        op->pieces[i] = (ptl_iovec_t){iov[i].iov_base, iov[i].iov_len};
        op->length += iov[i].iov_len;
    }
    return true;
}

void operation_free(struct operation *op) {
    struct domain *domain = op->ep->domain;
    if (op->list)
        list_remove(op);
    if (op->md != PTL_INVALID_HANDLE)
        PtlMDRelease(op->md);
    domain->appended -= op->appended;
    op->next = domain->free;
    domain->free = op;
}

int operation_append(struct operation *op, ptl_pt_index_t pt, const ptl_me_t *me) {
    struct domain *domain = op->ep->domain;
    int rc = PtlMEAppend(domain->ni, pt, me, PTL_PRIORITY_LIST, op, &op->entry);
    op->appended = rc == PTL_OK;
    domain->appended += op->appended;
    return rc;
}

void list_append(struct list *list, struct operation *op) {
    op->list = list;
    op->next = NULL;
    op->previous = list->last;
    if (list->last)
        list->last->next = op;
    else
        list->first = op;
    list->last = op;
}

void list_remove(struct operation *op) {
    struct list *list = op->list;
    *(op->previous ? &op->previous->next : &list->first) = op->next;
    *(op->next ? &op->next->previous : &list->last) = op->previous;
    op->list = NULL;
}

int descriptor(struct operation *op, ptl_handle_md_t all, unsigned options, ptl_handle_md_t *md, ptl_size_t *offset) {
    if (op->count <= 1) {
        *md = all;
        *offset = op->count == 1 ? (uintptr_t)op->pieces[0].iov_base : 0;
        return PTL_OK;
    }
    ptl_md_t pieces = {.start = &op->pieces[0],
                       .length = op->count,
                       .options = options | PTL_IOVEC,
                       .eq_handle = op->ep->domain->eq,
                       .ct_handle = PTL_CT_NONE};
    int rc = PtlMDBind(op->ep->domain->ni, &pieces, &op->md);
    *md = op->md;
    *offset = 0;
    return rc;
}

static struct counter *counter_of(const struct operation *op) {
    const struct endpoint *ep = op->ep;
    switch (op->job) {
    case SEND: return ep->sent;
    case RECEIVE:
    case SEARCH: return ep->received;
    case READ: return ep->read;
    default: return ep->written;
    }
}

void complete(struct operation *op, struct completion completion) {
    struct endpoint *ep = op->ep;
    struct counter *counter = counter_of(op);
    struct completion_queue *cq = op->job == RECEIVE || op->job == SEARCH ? ep->rx_cq : ep->tx_cq;
    struct operation *parent = op->parent;
    const bool releases = parent && --parent->children == 0 && !parent->list;
    completion.entry.op_context = op->context;
    completion.entry.flags |= op->flags;
    /* The memory of a receive with FI_MULTI_RECV is the program's again with the last message in it, or with its cancellation. */
    if (op->multi || (releases && !parent->cancelled))
        completion.entry.flags |= FI_MULTI_RECV;
    /* The end of a receive with FI_MULTI_RECV is no message. */
    if (counter && op->job != SEARCH && (!op->multi || completion.error))
        *(completion.error ? &counter->errors : &counter->value) += 1;
    if (cq && (completion.error || op->report || completion.entry.flags & FI_MULTI_RECV))
        cq_push(cq, &completion);
    operation_free(op);
    if (releases && parent->cancelled)
        cancelled(parent);
    else if (releases)
        operation_free(parent);
}

void cancelled(struct operation *op) {
    complete(op, (struct completion){.entry.flags = FI_RECV | (op->kind == TAGGED ? FI_TAGGED : FI_MSG),
                                     .entry.tag = op->tag,
                                     .error = ECANCELED});
}

void fail(struct operation *op, int error, ptl_ni_fail_t card_error) {
    complete(op, (struct completion){.entry.tag = op->tag, .error = error, .card_error = card_error});
}

/* ---- Events -------------------------------------------------------------------------------------------------------------------- */

/* An operation that this process has begun has come to its end. */
static void initiator_event(struct domain *domain, const ptl_event_t *event) {
    uintptr_t index = (uintptr_t)event->user_ptr;
    bool of_handler = index > 0 && index <= RECEIVE_STATES;
    struct operation *op = of_handler ? domain->with_state[index - 1] : event->user_ptr;
    if (!op) {
        /* An injected message has no operation, so the failure is told without one. */
        if (event->ni_fail_type != PTL_NI_OK)
            complain("an injected message or a long one that nobody waits for failed: %s",
                     event->ni_fail_type == PTL_NI_UNDELIVERABLE ? "its target cannot be reached" : "it was refused");
    } else if (op->job == RECEIVE) {
        receive_event(op, event);
    } else if (event->ni_fail_type != PTL_NI_OK) {
        if (op->appended && event->type != PTL_EVENT_GET)
            PtlMEUnlink(handle_of(&op->entry));
        fail(op, error_of_event(event->ni_fail_type), event->ni_fail_type);
    } else {
        complete(op, (struct completion){.entry.len = op->length});
    }
}

static void handle(struct domain *domain, const ptl_event_t *event) {
    enum what what = (uintptr_t)event->user_ptr > RECEIVE_STATES ? *(enum what *)event->user_ptr : OPERATION;
    if (what == PEER) {
        flow_failed(event->user_ptr);
        return;
    }
    if (what == TAKING) {
        taken(((struct taking *)event->user_ptr)->ep, event);
        return;
    }
    switch (event->type) {
    case PTL_EVENT_SEND:
    case PTL_EVENT_ACK:
    case PTL_EVENT_REPLY:
    case PTL_EVENT_GET: initiator_event(domain, event); break;
    case PTL_EVENT_PUT:
    case PTL_EVENT_PUT_OVERFLOW:
        if (what == BUFFER)
            buffer_event(event->user_ptr, event);
        else if (what == CONTROL)
            control_event(event->user_ptr, event);
        else if (((struct operation *)event->user_ptr)->job == SEARCH) /* that takes its message off the card's list */
            search_event(event->user_ptr, event);
        else
            receive_event(event->user_ptr, event);
        break;
    case PTL_EVENT_SEARCH: search_event(event->user_ptr, event); break;
    case PTL_EVENT_AUTO_UNLINK:
    case PTL_EVENT_AUTO_FREE: buffer_event(event->user_ptr, event); break;
    case PTL_EVENT_HANDLER_ERROR:
        complain("a handler of the provider failed (%d); please report it", event->ni_fail_type);
        break;
    default: complain("an event of type %d that was not expected; please report it", event->type);
    }
}

static void check_queue(int rc) {
    if (rc == PTL_OK)
        return;
    complain(rc == PTL_EQ_DROPPED
                 ? "the card's event queue has overflowed: the program must read its completion queues more often"
                 : "the card does not work any more");
    abort();
}

void handle_next(struct domain *domain) {
    ptl_event_t event;
    check_queue(PtlEQWait(domain->eq, &event));
    handle(domain, &event);
}

void progress(struct domain *domain) {
    enum { BATCH = 64 };
    ptl_event_t events[BATCH];
    unsigned count;
    const int before = defer_begin(domain);
    do {
        int rc = spin_eq_take(domain->eq, events, BATCH, &count);
        if (rc == PTL_EQ_EMPTY)
            break;
        check_queue(rc);
        for (unsigned i = 0; i < count; i++)
            handle(domain, &events[i]);
    } while (count == BATCH);
    flow_answer(domain);
    defer_end(before);
}

enum { PS_PER_MS = 1000 * 1000 * 1000 };

uint64_t end_of_wait(int milliseconds) {
    return milliseconds < 0 ? FOREVER : spin_time_ps() + (uint64_t)milliseconds * PS_PER_MS;
}

bool await_progress(struct domain *domain, uint64_t end) {
    ptl_event_t event;
    unsigned which;
    if (end == FOREVER) {
        idle(domain);
        return true;
    }
    const uint64_t now = spin_time_ps();
    if (now >= end)
        return false;
    int rc = PtlEQPoll(&domain->eq, 1, (ptl_time_t)((end - now + PS_PER_MS - 1) / PS_PER_MS), &event, &which);
    if (rc != PTL_OK)
        return false;
    pthread_mutex_lock(&domain->lock);
    handle(domain, &event);
    progress(domain);
    pthread_mutex_unlock(&domain->lock);
    return true;
}
