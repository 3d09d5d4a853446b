/* The libfabric provider "spin": reliable datagram endpoints over the simulated card.
 *
 * | file         | what it does |
 * | ---          | --- |
 * | fi/info.c | the entry point of the library, and what fi_getinfo tells |
 * | core/address.c | names of endpoints, and the hosts that stand for ranks |
 * | fi/domain.c | fabrics, domains, event queues, address vectors, memory regions |
 * | fi/cq.c | completion queues and counters |
 * | fi/ep.c | endpoints: binding, names, options |
 * | core/operation.c | events of the card, and the operations that they complete |
 * | rx/recv.c | messages with and without tags: sends, receives, searches |
 * | rx/unexpected.c | buffers for messages without a receive, and the CPU's lists |
 * | core/credit.c | how much may be under way to an endpoint, so that it has memory for it |
 * | fi/atomic.c | reads, writes and atomic operations on remote memory |
 * | rx/handlers.c | handlers that fetch long messages on the card |
 *
 * A domain has one Portals interface and one event queue. All calls take the lock of their domain (FI_THREAD_SAFE). docs/mpi.md has the
 * protocols. */
#ifndef OFI_DOMAIN_H
#define OFI_DOMAIN_H

#include "../base/libfabric.h"
#include "../base/wire.h"

#define SPIN_NO_SHORT_NAMES
#include <spin.h>

#include <pthread.h>
#include <stdbool.h>

#define CONTAINER(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

enum { IOV_LIMIT = 32 };   /* pieces of memory of one operation */
enum { INJECT_MAX = 256 }; /* upper bound of max_volatile_size that is used */
enum { KEY_BITS = 16 };    /* of a provider's key that only distinguish regions with the same first byte */
enum { ENDPOINTS = 8 };    /* of a process: their numbers have 3 bits in headers */
enum { ANY_BUFFERS = 8 };  /* buffers that an endpoint keeps linked at least, for unexpected messages of each kind */
enum { BUFFER_SIZE = 1 << 20 };

/* How messages are matched and long ones fetched. */
enum protocol {
    PROTOCOL_CPU,      /* the CPU matches and fetches: cards of kind rdma */
    PROTOCOL_PORTALS4, /* the card matches, the CPU fetches */
    PROTOCOL_SPIN      /* the card matches, and header handlers fetch */
};

/* The name of an endpoint, as fi_getname gives it. */
struct name {
    ptl_nid_t nid;
    ptl_pid_t pid;
    uint16_t message_pt, tagged_pt, remote_pt, control_pt;
    uint16_t number; /* among the endpoints of its process */
};

/* ---- Objects ------------------------------------------------------------------------------------------------------------ */

struct fabric {
    struct fid_fabric fid;
};

struct event_queue {
    struct fid_eq fid;
};

struct region {
    struct fid_mr fid;
    struct region *next; /* of the domain */
    struct domain *domain;
    ptl_handle_me_t entry;
    ptl_iovec_t *pieces; /* of the entry, or NULL */
};

struct address_vector {
    struct fid_av fid;
    struct domain *domain;
    enum fi_av_type type;
    struct name *names; /* removed ones have nid PTL_NID_ANY */
    size_t count, room;
};

struct completion {
    struct fi_cq_tagged_entry entry;
    fi_addr_t source;
    int error; /* 0, or a positive error number */
    int card_error;
    size_t overflow; /* bytes that did not fit */
};

struct completion_queue {
    struct fid_cq fid;
    struct domain *domain;
    size_t entry_size;
    bool may_wait;
    bool signalled;
    struct completion *ring;
    size_t first, count, room;
};

struct counter {
    struct fid_cntr fid;
    struct domain *domain;
    uint64_t value, errors;
};

struct domain {
    struct fid_domain fid;
    struct fabric *fabric;
    pthread_mutex_t lock;
    enum protocol protocol;
    size_t eager; /* bytes of the longest message that is sent at once */
    bool virtual_addresses;
    bool tells_source; /* FI_SOURCE */
    ptl_handle_ni_t ni;
    ptl_ni_limits_t limits;
    ptl_process_t self;
    ptl_handle_eq_t eq;
    /* Descriptors of all memory: with SEND events, without them (for acknowledgements and replies), and for data that is read during
     * the call, which only tells failures */
    ptl_handle_md_t md_send, md_quiet, md_volatile;
    ptl_handle_md_t md_lossy; /* as md_volatile, for messages that a peer may miss; PTL_INVALID_HANDLE until needed */
    ptl_pt_index_t remote_pt;
    uint64_t next_key;
    struct region *regions;
    struct operation *free; /* operations to be used again */
    /* Receives with handlers: the HPU memory of each, which receive has it, and a stack of those that are free */
    ptl_hpu_md_h states[RECEIVE_STATES];
    struct operation *with_state[RECEIVE_STATES];
    uint32_t free_states[RECEIVE_STATES];
    uint32_t free_count;
    size_t objects; /* that keep the domain open */
    int ranks;
    struct peer *peers[ENDPOINTS]; /* of the endpoints with these numbers, or NULL */
    struct endpoint *asked;        /* endpoints that must take messages off the card's list */
    unsigned appended;             /* entries for receives and for long messages */
};

/* The two kinds of messages. */
enum kind { MESSAGE, TAGGED, KINDS };

/* A list of operations, with links in both directions. */
struct list {
    struct operation *first, *last;
};

/* A message that has arrived and has no receive yet. */
struct arrival {
    struct arrival *next;
    ptl_process_t source;
    uint64_t tag;
    uint64_t header; /* hdr_data */
    uint64_t offset; /* of the put */
    unsigned char *start;
    size_t length;         /* bytes at start */
    struct buffer *buffer; /* that they are in */
    void *claimed;         /* the context of the search that claimed it */
};

struct arrivals {
    struct arrival *first, **end; /* where the next one is linked */
};

/* What the user_ptr of an event points to begins with this. */
enum what { OPERATION, BUFFER, CONTROL, PEER, TAKING };

/* Memory for messages without a receive. */
struct buffer {
    enum what what;
    struct endpoint *ep;
    enum kind kind;
    unsigned char *memory;
    ptl_handle_me_t entry;
    size_t held;   /* messages in it that are still needed */
    bool linked;   /* the card may put messages there */
    bool referred; /* the card may find messages there */
};

/* The entry for messages of an endpoint that only bring remote CQ data. */
struct control {
    enum what what;
    struct endpoint *ep;
    ptl_handle_me_t entry;
};

/* Units of a kind of messages (flow.c) */
struct flow {
    unsigned under_way; /* to the peer, as far as this endpoint knows */
    unsigned owed;      /* taken here, which the peer has not been told */
    bool asked;         /* the peer for units */
};

/* An endpoint of the job, as an endpoint of this process sees it. */
struct peer {
    enum what what;
    struct flow flows[KINDS];
    bool waits; /* for an answer to this endpoint */
    struct name name;
    bool gone; /* it has not taken a request */
};

/* The search that takes messages off the card's list. */
struct taking {
    enum what what;
    struct endpoint *ep;
    bool answered, more;
};

struct endpoint {
    struct fid_ep fid;
    struct domain *domain;
    struct address_vector *av;
    struct completion_queue *tx_cq, *rx_cq;
    bool tx_selective, rx_selective;
    struct counter *sent, *received, *read, *written;
    uint64_t tx_flags, rx_flags; /* defaults of operations */
    size_t min_multi_recv;
    bool directed; /* FI_DIRECTED_RECV: receives may ask for messages of one source */
    bool enabled;
    struct name name;
    ptl_pt_index_t pts[KINDS];
    ptl_pt_index_t data_pt, control_pt;
    struct control control_target;
    struct list posted[KINDS];       /* receives, in the order of the calls */
    struct arrivals arrivals[KINDS]; /* messages without a receive that the CPU has taken */
    struct arrival *claimed;         /* messages that a search has taken off the lists */
    struct buffer **buffers;
    size_t buffer_count, buffer_room;
    uint32_t cookies; /* number of the last long message */
    unsigned number;  /* among the endpoints of its process */
    struct peer *peers;
    struct taking taking;
    bool is_asked; /* whether it is in the domain's list */
    struct endpoint *next_asked;
};

/* ---- Operations --------------------------------------------------------------------------------------------------------- */

enum job { SEND, RECEIVE, SEARCH, READ, WRITE, ATOMIC };

/* A call that has not completed. */
struct operation {
    enum what what;
    enum job job;
    enum kind kind;
    struct endpoint *ep;
    struct operation *next, *previous;
    struct list *list; /* that it is in, or NULL */
    void *context;
    uint64_t flags; /* of its completion */
    bool report;    /* whether its success is put into the completion queue */
    ptl_handle_md_t md;
    ptl_iovec_t pieces[IOV_LIMIT];
    unsigned count;
    size_t length;          /* of all pieces */
    ptl_process_t source;   /* receives: whose messages match */
    unsigned source_number; /* of its endpoint */
    uint64_t tag, ignore;
    ptl_handle_me_t entry; /* written later if its call is deferred */
    bool appended;
    uint64_t offset;       /* of the put that was received, with the length of a long message */
    uint64_t header;       /* hdr_data of the message that was received */
    uint32_t state;        /* index of its HPU memory, or NO_STATE */
    unsigned awaited;      /* events until it is complete */
    ptl_ni_fail_t failure; /* of one of them */
    bool multi;            /* FI_MULTI_RECV */
    uint64_t search_flags;
    unsigned char copy[INJECT_MAX]; /* of what the caller may change at once */
    struct operation *parent;       /* the receive with FI_MULTI_RECV whose memory this one uses */
    size_t used;                    /* bytes of such a receive that messages have taken */
    unsigned children;
    bool cancelled; /* such a receive, while messages are on their way into its memory */
};

enum { NO_STATE = UINT32_MAX };

/* What a message's header data tells: the remote CQ data, the number of a long message or the units that are owed, the number of the
 * sender's endpoint, and two flags. */
#define HEADER_DATA(header) ((uint32_t)(header))
#define HEADER_OWED(header) ((uint16_t)((header) >> 32))
#define HEADER_WITH_OWED(owed) ((uint64_t)(owed) << 32)
#define HEADER_FROM(number) ((uint64_t)(number) << 59)
#define HEADER_NUMBER(header) ((unsigned)((header) >> 59) & (ENDPOINTS - 1))
#define HEADER_HAS_DATA FI_BIT(63)

/* ---- info.c ------------------------------------------------------------------------------------------------------------- */

extern struct fi_provider provider;
/* Capabilities of endpoints; what they do with remote CQ data does not depend on a capability. */
#define SPIN_CAPS                                                                                                      \
    (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_RECV | FI_SEND | FI_REMOTE_READ |               \
     FI_REMOTE_WRITE | FI_MULTI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SOURCE | FI_DIRECTED_RECV)
#define SPIN_OP_FLAGS                                                                                                  \
    (FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MULTI_RECV)

/* The bits that tags may have: 64, or 63 where the card's handlers need one. */
uint64_t tag_format(enum protocol protocol);
/* The longest data of a call with FI_INJECT, in bytes. */
size_t inject_size(const ptl_ni_limits_t *limits);

/* Writes a line on standard error, with the rank. */
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);

/* The error number for a return code of Portals, for a failure of an event. */
int error_of(int return_code);
/* What a call that posts an operation returns for a return code of Portals. A full table has room again when operations have ended. */
ssize_t result_of(int return_code);
int error_of_event(ptl_ni_fail_t failure);

/* ---- name.c ------------------------------------------------------------------------------------------------------------- */

/* The portal table entry of an endpoint with this number, for this use. */
enum pt_use { PT_MESSAGE, PT_TAGGED, PT_DATA, PT_CONTROL };
ptl_pt_index_t endpoint_pt(unsigned number, enum pt_use use);
/* Allocates a portal table entry: this one, or another one if a library of the process has it. */
int pt_alloc(struct domain *domain, ptl_pt_index_t wanted, ptl_pt_index_t *pt);
/* Allocates the entry of a domain for remote memory. */
int remote_pt_alloc(struct domain *domain);
/* The name that the first endpoint of the first domain of a process has. */
struct name first_name(ptl_process_t process);

/* The rank that a host's name stands for; 0 for other names of this computer. */
struct host {
    bool names_rank; /* it is an address of the ranks' network */
    unsigned rank;
};
/* Resolves a host and a service, of which one may be NULL. Returns why that is not possible, or NULL. */
const char *host_find(const char *node, const char *service, uint64_t flags, struct host *host);

/* ---- objects.c ---------------------------------------------------------------------------------------------------------- */

int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
/* Opens the card, for fi_getinfo: which limits it has. Each success needs a card_close. */
int card_open(ptl_handle_ni_t *ni, ptl_ni_limits_t *limits);
void card_close(ptl_handle_ni_t ni);
enum protocol card_protocol(const ptl_ni_limits_t *limits);
/* The default of an operation that an object does not have. */
int no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int no_control(struct fid *fid, int command, void *arg);
int no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

/* The name behind an address, or NULL. */
const struct name *av_name(const struct address_vector *av, fi_addr_t address);
/* The address of the endpoint of a process with this number, or FI_ADDR_NOTAVAIL. */
fi_addr_t av_address(const struct address_vector *av, ptl_process_t process, unsigned number);

/* ---- completion.c ------------------------------------------------------------------------------------------------------- */

int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);
int cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context);
void cq_push(struct completion_queue *cq, const struct completion *completion);

/* ---- endpoint.c --------------------------------------------------------------------------------------------------------- */

int endpoint_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
extern struct fi_ops_msg message_ops;
extern struct fi_ops_tagged tagged_ops;
extern struct fi_ops_rma rma_ops;
extern struct fi_ops_atomic atomic_ops;
int query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr,
                 uint64_t flags);

/* ---- progress.c --------------------------------------------------------------------------------------------------------- */

/* Handles all events that the card has for the domain. The lock is taken. */
void progress(struct domain *domain);
/* Waits for an event and handles it. The lock is taken. */
void handle_next(struct domain *domain);
/* The simulated time in ps at which a wait of so many milliseconds that begins now is over; FOREVER if negative. */
#define FOREVER UINT64_MAX
uint64_t end_of_wait(int milliseconds);
/* Waits for an event until then and handles it, or, without a limit, until something may have changed. The lock is not taken. Returns
 * false when the time is over. */
bool await_progress(struct domain *domain, uint64_t end);

/* Has the library defer calls of the card that need no answer (spin_defer), or not any more. The lock is taken. */
int defer_begin(const struct domain *domain);
void defer_end(int before);
/* The handle of an entry whose append may have been deferred. */
ptl_handle_me_t handle_of(const ptl_handle_me_t *entry);
/* Says that a round of polls has found nothing. The lock is not taken. */
void idle(struct domain *domain);

struct operation *operation_new(struct endpoint *ep, enum job job, void *context, uint64_t flags, bool report);
/* Sets the memory of an operation. Returns false if there are too many pieces. */
bool operation_memory(struct operation *op, const struct iovec *iov, size_t count);
void operation_free(struct operation *op);
/* Completes an operation, successfully or with an error number, and frees it. */
void complete(struct operation *op, struct completion completion);
void fail(struct operation *op, int error, ptl_ni_fail_t card_error);
/* Completes a receive that the program has cancelled. */
void cancelled(struct operation *op);

void list_append(struct list *list, struct operation *op);
void list_remove(struct operation *op);

/* Appends an entry for an operation. */
int operation_append(struct operation *op, ptl_pt_index_t pt, const ptl_me_t *me);
/* The descriptor and the offset in it for the memory of an operation. The options say which events an own descriptor has. */
int descriptor(struct operation *op, ptl_handle_md_t all, unsigned options, ptl_handle_md_t *md, ptl_size_t *offset);

/* ---- message.c ---------------------------------------------------------------------------------------------------------- */

/* Allocates the portal table entries of an endpoint and links its buffers for messages without a receive. */
int messages_start(struct endpoint *ep);
void messages_stop(struct endpoint *ep);
void receive_event(struct operation *op, const ptl_event_t *event);
void search_event(struct operation *op, const ptl_event_t *event);
void control_event(struct control *control, const ptl_event_t *event);
/* Copies a message into the memory of its receive, or gets a long one. */
void deliver(struct operation *op, const struct arrival *arrival);
/* The message that an event of its put tells of. */
struct arrival arrival_of(const ptl_event_t *event);
/* The bytes of a message, which may be long. */
size_t arrival_total(const struct arrival *arrival);
/* Tells the sender of a message that is not wanted that its memory is free. */
void discard(struct endpoint *ep, const struct arrival *arrival);
/* Cancels the receive with this context. */
ssize_t message_cancel(struct endpoint *ep, void *context);
/* Tells what a search has found. */
void search_found(struct operation *op, const struct arrival *arrival);

/* ---- matching.c --------------------------------------------------------------------------------------------------------- */

/* Whether the card matches messages of this kind. */
bool card_matches(const struct endpoint *ep, enum kind kind);
/* Binds a descriptor of all memory. */
int bind_all(const struct domain *domain, unsigned options, ptl_handle_md_t *md);

/* Links buffers for messages of this kind until there is room for what may be under way. */
int buffers_link(struct endpoint *ep, enum kind kind);
void buffers_release(struct endpoint *ep);
void buffer_event(struct buffer *buffer, const ptl_event_t *event);
/* The buffer that a message is in. */
struct buffer *buffer_of(struct endpoint *ep, const unsigned char *start);
void buffer_drop(struct buffer *buffer);
/* The CPU's lists: a receive takes the first message that matches, and waits for one otherwise. */
void match_receive(struct operation *op);
/* Gives a receive the first message in the CPU's list that matches. Returns whether there is one. */
bool match_kept(struct operation *op);
/* Looks for a message in the CPU's list. Returns whether there is one. */
bool match_search(struct operation *op);
/* A message that the card's list has given up. */
void taken(struct endpoint *ep, const ptl_event_t *event);
/* A message that a search has claimed, by its context. The caller has it then. */
struct arrival *claim_take(struct endpoint *ep, void *context);
void claim_keep(struct endpoint *ep, const struct arrival *arrival, void *context);

/* ---- flow.c ------------------------------------------------------------------------------------------------------------- */

/* The number of a new endpoint. Returns -EMFILE if the process has ENDPOINTS. */
int endpoint_number_take(unsigned *number);
void endpoint_number_return(unsigned number);

int flow_start(struct endpoint *ep);
/* How many buffers hold what may be under way to an endpoint. */
size_t flow_buffers(const struct endpoint *ep);
struct peer *flow_peer(const struct endpoint *ep, const struct name *name);
/* The units of a short message of this length. A long one has one. */
unsigned flow_units(size_t length);
/* Whether a message is sent at once, and not announced. */
bool flow_is_short(const struct endpoint *ep, const struct name *name, size_t length);
/* Whether these units may be sent to a peer. If not, the peer is asked for some. */
bool flow_has_room(struct endpoint *ep, enum kind kind, const struct name *name, unsigned units);
/* A message has found its receive, or the CPU has put it into a list. */
void flow_taken(struct endpoint *ep, enum kind kind, const ptl_event_t *event);
/* An event of the control entry. Returns false if it does not concern flow control. */
bool flow_event(struct endpoint *ep, const ptl_event_t *event);
/* A request for units has failed: its target is gone. */
void flow_failed(struct peer *peer);
/* Takes messages off the card's list for peers that have asked for units. */
void flow_answer(struct domain *domain);

#endif
