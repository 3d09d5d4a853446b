/* What the parts of the tracer know of each other. */
#ifndef SPINTRACE_TRACE_H
#define SPINTRACE_TRACE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "format.h"

/* Symbols with this are the library's face; all else stays hidden (-fvisibility=hidden). */
#define SPT_API __attribute__((visibility("default")))

/* ---- record.c: clocks, records and the file ---- */

/* Starts tracing; call after MPI_Init. */
void spt_start(void);
/* Ends the file. */
void spt_end(void);
/* Writes what there is; the file stays open. */
void spt_flush(void);

/* Every wrapper calls `spt_enter` before and `spt_leave` after the call. `spt_leave` says whether the call is to be
 * recorded: tracing runs, the call was made by the program and not by another call, and it succeeded. */
void spt_enter(void);
bool spt_leave(int result);

/* One record: kind, then its fields. Records of kinds from SPT_SEND on get the times of the call that was left. */
void spt_begin(int kind);
void spt_put(uint64_t number);
void spt_put_text(const char *text);
void spt_commit(void);

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
/* Its neighbours in a topology. */
void spt_find_neighbors(MPI_Comm comm, struct spt_comm *known);
void spt_handles_start(void);

/* Rank in MPI_COMM_WORLD of a rank in the communicator; -1 for MPI_PROC_NULL and processes that are not in it. */
int spt_world(const struct spt_comm *comm, int rank);

struct spt_request {
    uint64_t key;
    int next;
    bool active;     /* a message or collective is under way */
    bool persistent; /* outlives its completion; the fields below say what each start does */
    bool wild;       /* a receive from any source or with any tag */
    bool cancelled;
    bool claimed; /* by the present look-up of several: handles may be shared */
    int kind;
    struct spt_comm *comm;
    int peer, tag;
    uint64_t bytes;
    int parts, ready; /* of a partitioned send; 0 parts: an ordinary one */
};

/* Number of a new request; its entry is zero but for the key. */
int spt_request_new(MPI_Request request);
/* Number of a request, or -1. */
int spt_request_find(MPI_Request request);
/* Number of a request that is under way and not claimed yet, or -1; claims it. */
int spt_request_claim(MPI_Request request);
/* As the first two, for a matched message. */
int spt_message_new(MPI_Message message);
int spt_message_find(MPI_Message message);
struct spt_request *spt_request(int number);
void spt_request_delete(int number);

/* ---- point.c ---- */

/* Fields peer and tag. */
void spt_put_envelope(int peer, int tag);
/* Field `actual` of a receive from `comm`, if it needs one. */
void spt_put_actual(const struct spt_comm *comm, const MPI_Status *status);
void spt_note_send(int kind, uint64_t bytes, int to, int tag, MPI_Comm comm, const MPI_Request *request);
void spt_note_recv(int kind, uint64_t bytes, int from, int tag, MPI_Comm comm, const MPI_Request *request,
                   const MPI_Status *status);
uint64_t spt_bytes(int64_t count, MPI_Datatype type);

/* ---- collective.c ---- */

void spt_note_barrier(MPI_Comm comm, const MPI_Request *request);

#endif
