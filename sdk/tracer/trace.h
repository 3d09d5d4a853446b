/* The interfaces between the parts of the tracer. */
#ifndef SPINTRACE_TRACE_H
#define SPINTRACE_TRACE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format.h"

/* Symbols with this attribute are exported; all others stay hidden (-fvisibility=hidden). */
#define SPT_API __attribute__((visibility("default")))

/* The features of an MPI. Open MPI 5 has persistent collectives, partitions and more of MPI 4, though it reports MPI
 * 3.1. */
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
#define SPT_HAS_MPI_4 1
#else
#define SPT_HAS_MPI_4 0
#endif
/* The calls with names in `_c`, whose counts are MPI_Count. */
#define SPT_HAS_LARGE_COUNTS (MPI_VERSION >= 4)

/* ---- record.c: clocks, records and the file ---- */

/* Starts tracing; call after MPI_Init. */
void spt_start(void);
/* Ends the file. */
void spt_end(void);
/* Ends the file of a program that aborts, as if it were killed here: MPI_Abort may return before the launcher ends the
 * program, and what it does until then is not what it was to do. */
void spt_cut_off(void);

/* Every wrapper calls `spt_enter` before and `spt_leave` after the call. `spt_leave` says whether the call is to be
 * recorded: tracing runs, the call was made by the program and not by another call, and it succeeded. The wrapper's name
 * is that of the call in the timeline of a simulated run. */
#define spt_enter() spt_enter_call(__func__)
void spt_enter_call(const char *name);
bool spt_leave(int result);

/* Begins a record: kind, then its fields. Records of kinds from SPT_SEND on get the times of the call that has ended.
 * */
void spt_begin(int kind);
void spt_put(uint64_t number);
void spt_put_text(const char *text);
void spt_put_bytes(const void *bytes, size_t count);
void spt_commit(void);
/* Removes the data since the last commit, and returns it in memory of its own. */
void *spt_take(size_t *count);
/* Allocates zeroed memory; ends the program if there is none. */
void *spt_allocate(size_t count, size_t size);

/* ---- handles.c: communicators and requests ---- */

struct spt_neighbors {
    int count;
    int *peers; /* ranks in MPI_COMM_WORLD, -1 for none */
};

struct spt_comm {
    uint64_t number;
    int references;
    bool inter;
    int me;     /* rank in it (in the local group) */
    int size;   /* ranks that one can talk to: of the remote group of an intercommunicator */
    int *world; /* their ranks in MPI_COMM_WORLD, -1 for one that is not in it */
    bool has_neighbors;
    struct spt_neighbors in, out;
};

/* The communicator; a new one is recorded first. Never NULL. */
struct spt_comm *spt_comm_of(MPI_Comm comm);
/* Records something new with the processes of `comm`: a copy of it, or a window. */
struct spt_comm *spt_comm_like(MPI_Comm comm);
/* Attaches the description `known` to `comm`. */
void spt_comm_is(MPI_Comm comm, struct spt_comm *known);
void spt_comm_release(struct spt_comm *known);
/* The processes of a group: runs of ranks in MPI_COMM_WORLD. */
void spt_put_group(MPI_Group group);
/* Counts the neighbours of the rank in a topology: those from which it receives, and those to which it sends. */
void spt_count_neighbors(MPI_Comm comm, int *in, int *out);
/* Stores the ranks of these neighbours in `known`. */
void spt_find_neighbors(MPI_Comm comm, struct spt_comm *known);
void spt_handles_start(void);

/* Rank in MPI_COMM_WORLD of a rank in the communicator; -1 for MPI_PROC_NULL and processes that are not in it. */
int spt_world(const struct spt_comm *comm, int rank);

struct spt_request {
    uint64_t key;
    int next;
    bool active;     /* a message or collective is in progress */
    bool persistent; /* outlives its completion; the fields below say what each start does */
    bool wild;       /* a receive from any source or with any tag */
    bool cancelled;
    bool claimed; /* by the present look-up of several: handles may be shared */
    int kind;
    struct spt_comm *comm;
    int peer, tag;
    uint64_t bytes;
    int parts, ready; /* parts of a partitioned send, and those that are ready; 0 parts: an ordinary send */
    void *fields;     /* fields of a persistent collective's record after the request */
    size_t length;    /* bytes of these fields */
    void *kept;       /* memory that the call reads until it is complete */
    MPI_Comm *made;   /* place of the communicator that MPI_Comm_idup creates, a copy of `comm` */
};

/* Number of a new request; its entry is zero but for the key. */
int spt_request_new(MPI_Request request);
/* Number of a request, or -1. */
int spt_request_find(MPI_Request request);
/* Number of an active request that is not claimed yet, or -1; claims it. */
int spt_request_claim(MPI_Request request);
/* As the first two, for a matched message. */
int spt_message_new(MPI_Message message);
int spt_message_find(MPI_Message message);
struct spt_request *spt_request(int number);
void spt_request_delete(int number);

/* How a call is made. */
struct spt_how {
    const MPI_Request *request; /* NULL for a blocking call */
    bool persistent;
};
#define SPT_BLOCKING ((struct spt_how){NULL, false})

/* ---- persistent.c ---- */

/* A new persistent request, whose starts will be messages or collectives of this kind. */
struct spt_request *spt_keep(int kind, MPI_Comm comm, const MPI_Request *request);
void spt_keep_message(int kind, uint64_t bytes, int peer, int tag, MPI_Comm comm, const MPI_Request *request,
                      int parts);

/* ---- point.c ---- */

/* Fields peer and tag. */
void spt_put_envelope(int peer, int tag);
/* Field `actual` of a receive from `comm`, if it needs one. */
void spt_put_actual(const struct spt_comm *comm, const MPI_Status *status);
void spt_note_send(int kind, uint64_t bytes, int to, int tag, MPI_Comm comm, const MPI_Request *request);
void spt_note_recv(int kind, uint64_t bytes, int from, int tag, MPI_Comm comm, const MPI_Request *request,
                   const MPI_Status *status);
bool spt_is_wild(int from, int tag);
/* Rank in MPI_COMM_WORLD, or -1 for any. */
int spt_sender(const struct spt_comm *comm, int from);
uint64_t spt_bytes(int64_t count, MPI_Datatype type);

/* ---- collective.c ---- */

void spt_note_barrier(MPI_Comm comm, struct spt_how how);

#endif
