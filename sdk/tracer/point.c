/* SPDX-License-Identifier: Apache-2.0 */
/* Point-to-point calls. */
#include "trace.h"

/* Returns the number of a new active request. */
static int new_request(const MPI_Request *handle) {
    int number = spt_request_new(*handle);
    spt_request(number)->active = true;
    return number;
}

static void note_send(int kind, uint64_t bytes, int to, int tag, MPI_Comm comm, const MPI_Request *request) {
    struct spt_comm *known = spt_comm_of(comm);
    if (spt_world(known, to) < 0)
        return;
    spt_begin(kind);
    spt_put(known->number);
    spt_put_envelope(spt_world(known, to), tag);
    spt_put(bytes);
    if (request)
        spt_put((uint64_t)new_request(request));
    spt_commit();
}

static void refer(struct spt_request *request, struct spt_comm *comm) {
    request->comm = comm;
    comm->references++;
}

/* Returns the number of the new request of a receive. */
static int new_recv(const MPI_Request *request, struct spt_comm *comm, int from, int tag) {
    int number = new_request(request);
    struct spt_request *entry = spt_request(number);
    entry->wild = spt_is_wild(from, tag);
    if (entry->wild)
        refer(entry, comm);
    return number;
}

static void note_recv(int kind, uint64_t bytes, int from, int tag, MPI_Comm comm, const MPI_Request *request,
                      const MPI_Status *status) {
    struct spt_comm *known = spt_comm_of(comm);
    if (from != MPI_ANY_SOURCE && spt_world(known, from) < 0)
        return;
    spt_begin(kind);
    spt_put(known->number);
    spt_put_envelope(spt_sender(known, from), tag);
    spt_put(bytes);
    if (request)
        spt_put((uint64_t)new_recv(request, known, from, tag));
    else if (spt_is_wild(from, tag))
        spt_put_actual(known, status);
    spt_commit();
}

/* Records both halves, or one if the peer of the other is MPI_PROC_NULL. */
static void note_sendrecv(uint64_t sent, int to, int send_tag, uint64_t received, int from, int recv_tag, MPI_Comm comm,
                          const MPI_Request *request, const MPI_Status *status) {
    struct spt_comm *known = spt_comm_of(comm);
    bool sends = spt_world(known, to) >= 0, receives = from == MPI_ANY_SOURCE || spt_world(known, from) >= 0;
    if (!sends) {
        note_recv(request ? SPT_IRECV : SPT_RECV, received, from, recv_tag, comm, request, status);
        return;
    }
    if (!receives) {
        note_send(request ? SPT_ISEND : SPT_SEND, sent, to, send_tag, comm, request);
        return;
    }
    spt_begin(request ? SPT_ISENDRECV : SPT_SENDRECV);
    spt_put(known->number);
    spt_put_envelope(spt_world(known, to), send_tag);
    spt_put(sent);
    spt_put_envelope(spt_sender(known, from), recv_tag);
    spt_put(received);
    if (request) {
        int number = new_recv(request, known, from, recv_tag);
#ifdef MPICH_VERSION
        /* The status of MPICH up to 5.0 lacks source and tag, so the record keeps the wildcard. */
        spt_request(number)->wild = false;
#endif
        spt_put((uint64_t)number);
    } else if (spt_is_wild(from, recv_tag)) {
        spt_put_actual(known, status);
    }
    spt_commit();
}

/* ---- Probes. A schedule has none: the receive that follows waits for the message. ---- */

/* Counts only the time of the call. */
static int left(int result) {
    spt_leave(result);
    return result;
}

SPT_API int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status) {
    spt_enter();
    return left(PMPI_Probe(from, tag, comm, status));
}

SPT_API int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
    spt_enter();
    return left(PMPI_Iprobe(from, tag, comm, flag, status));
}

/* Stores a matched message among the requests. Its receive is known now. */
static void matched(MPI_Message message, MPI_Comm comm, const MPI_Status *status) {
    if (message == MPI_MESSAGE_NULL || message == MPI_MESSAGE_NO_PROC)
        return;
    struct spt_comm *known = spt_comm_of(comm);
    struct spt_request *entry = spt_request(spt_message_new(message));
    entry->peer = status->MPI_SOURCE;
    entry->tag = status->MPI_TAG;
    refer(entry, known);
}

SPT_API int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status) {
    MPI_Status own, *used = status == MPI_STATUS_IGNORE ? &own : status;
    spt_enter();
    int result = PMPI_Mprobe(from, tag, comm, message, used);
    if (spt_leave(result))
        matched(*message, comm, used);
    return result;
}

SPT_API int MPI_Improbe(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status) {
    MPI_Status own, *used = status == MPI_STATUS_IGNORE ? &own : status;
    spt_enter();
    int result = PMPI_Improbe(from, tag, comm, flag, message, used);
    if (spt_leave(result) && *flag)
        matched(*message, comm, used);
    return result;
}

static void note_matched(int kind, int number, uint64_t bytes, const MPI_Request *request) {
    if (number < 0)
        return;
    struct spt_request *entry = spt_request(number);
    struct spt_comm *comm = entry->comm;
    int peer = entry->peer, tag = entry->tag;
    spt_begin(kind);
    spt_put(comm->number);
    spt_put_envelope(spt_world(comm, peer), tag);
    spt_put(bytes);
    spt_request_delete(number);
    if (request)
        spt_put((uint64_t)new_request(request));
    spt_commit();
}

/* ---- Calls with counts ---- */

#define COUNT int
#define MPI(name) MPI_##name
#define PMPI(name) PMPI_##name
#include "point_calls.h"

#if SPT_HAS_LARGE_COUNTS
#define COUNT MPI_Count
#define MPI(name) MPI_##name##_c
#define PMPI(name) PMPI_##name##_c
#include "point_calls.h"
#endif
