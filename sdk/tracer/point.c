/* Point-to-point calls. */
#include <stddef.h>

#include "trace.h"

uint64_t spt_bytes(int64_t count, MPI_Datatype type) {
    MPI_Count size;
    /* MPI_DATATYPE_NULL may come with nothing. */
    if (count == 0)
        return 0;
    PMPI_Type_size_x(type, &size);
    return (uint64_t)count * (uint64_t)size;
}

void spt_put_envelope(int peer, int tag) {
    spt_put((uint64_t)(peer + 1));
    spt_put(tag == MPI_ANY_TAG ? 0 : (uint64_t)tag + 1);
}

void spt_put_actual(const struct spt_comm *comm, const MPI_Status *status) {
    spt_put_envelope(spt_world(comm, status->MPI_SOURCE), status->MPI_TAG);
}

static bool is_wild(int from, int tag) { return from == MPI_ANY_SOURCE || tag == MPI_ANY_TAG; }

/* Rank in MPI_COMM_WORLD, or -1 for any. */
static int sender(const struct spt_comm *comm, int from) { return from == MPI_ANY_SOURCE ? -1 : spt_world(comm, from); }

static struct spt_request *new_request(const MPI_Request *handle, int *number) {
    *number = spt_request_new(*handle);
    return spt_request(*number);
}

void spt_note_send(int kind, uint64_t bytes, int to, int tag, MPI_Comm comm, const MPI_Request *request) {
    struct spt_comm *known = spt_comm_of(comm);
    if (spt_world(known, to) < 0)
        return;
    spt_begin(kind);
    spt_put(known->number);
    spt_put_envelope(spt_world(known, to), tag);
    spt_put(bytes);
    if (request) {
        int number;
        new_request(request, &number)->active = true;
        spt_put((uint64_t)number);
    }
    spt_commit();
}

static void refer(struct spt_request *request, struct spt_comm *comm) {
    request->comm = comm;
    comm->references++;
}

void spt_note_recv(int kind, uint64_t bytes, int from, int tag, MPI_Comm comm, const MPI_Request *request,
                   const MPI_Status *status) {
    struct spt_comm *known = spt_comm_of(comm);
    if (from != MPI_ANY_SOURCE && spt_world(known, from) < 0)
        return;
    spt_begin(kind);
    spt_put(known->number);
    spt_put_envelope(sender(known, from), tag);
    spt_put(bytes);
    if (request) {
        int number;
        struct spt_request *entry = new_request(request, &number);
        entry->active = true;
        entry->wild = is_wild(from, tag);
        if (entry->wild)
            refer(entry, known);
        spt_put((uint64_t)number);
    } else if (is_wild(from, tag)) {
        spt_put_actual(known, status);
    }
    spt_commit();
}

#define BLOCKING_SEND(Name)                                                                                            \
    SPT_API int MPI_##Name(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {         \
        spt_enter();                                                                                                   \
        int result = PMPI_##Name(buffer, count, type, to, tag, comm);                                                  \
        if (spt_leave(result))                                                                                         \
            spt_note_send(SPT_SEND, spt_bytes(count, type), to, tag, comm, NULL);                                      \
        return result;                                                                                                 \
    }

BLOCKING_SEND(Send)
BLOCKING_SEND(Bsend)
BLOCKING_SEND(Ssend)
BLOCKING_SEND(Rsend)

#define NONBLOCKING_SEND(Name)                                                                                         \
    SPT_API int MPI_##Name(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,           \
                           MPI_Request *request) {                                                                     \
        spt_enter();                                                                                                   \
        int result = PMPI_##Name(buffer, count, type, to, tag, comm, request);                                         \
        if (spt_leave(result))                                                                                         \
            spt_note_send(SPT_ISEND, spt_bytes(count, type), to, tag, comm, request);                                  \
        return result;                                                                                                 \
    }

NONBLOCKING_SEND(Isend)
NONBLOCKING_SEND(Ibsend)
NONBLOCKING_SEND(Issend)
NONBLOCKING_SEND(Irsend)

SPT_API int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
    MPI_Status own, *used = status == MPI_STATUS_IGNORE ? &own : status;
    spt_enter();
    int result = PMPI_Recv(buffer, count, type, from, tag, comm, used);
    if (spt_leave(result))
        spt_note_recv(SPT_RECV, spt_bytes(count, type), from, tag, comm, NULL, used);
    return result;
}

SPT_API int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                      MPI_Request *request) {
    spt_enter();
    int result = PMPI_Irecv(buffer, count, type, from, tag, comm, request);
    if (spt_leave(result))
        spt_note_recv(SPT_IRECV, spt_bytes(count, type), from, tag, comm, request, NULL);
    return result;
}

/* Both halves; one of them is left if the other's peer is MPI_PROC_NULL. */
static void note_sendrecv(uint64_t sent, int to, int send_tag, uint64_t received, int from, int recv_tag, MPI_Comm comm,
                          const MPI_Status *status) {
    struct spt_comm *known = spt_comm_of(comm);
    bool sends = spt_world(known, to) >= 0, receives = from == MPI_ANY_SOURCE || spt_world(known, from) >= 0;
    if (!sends) {
        spt_note_recv(SPT_RECV, received, from, recv_tag, comm, NULL, status);
        return;
    }
    if (!receives) {
        spt_note_send(SPT_SEND, sent, to, send_tag, comm, NULL);
        return;
    }
    spt_begin(SPT_SENDRECV);
    spt_put(known->number);
    spt_put_envelope(spt_world(known, to), send_tag);
    spt_put(sent);
    spt_put_envelope(sender(known, from), recv_tag);
    spt_put(received);
    if (is_wild(from, recv_tag))
        spt_put_actual(known, status);
    spt_commit();
}

SPT_API int MPI_Sendrecv(const void *out, int send_count, MPI_Datatype send_type, int to, int send_tag, void *in,
                         int recv_count, MPI_Datatype recv_type, int from, int recv_tag, MPI_Comm comm,
                         MPI_Status *status) {
    MPI_Status own, *used = status == MPI_STATUS_IGNORE ? &own : status;
    spt_enter();
    int result =
        PMPI_Sendrecv(out, send_count, send_type, to, send_tag, in, recv_count, recv_type, from, recv_tag, comm, used);
    if (spt_leave(result))
        note_sendrecv(spt_bytes(send_count, send_type), to, send_tag, spt_bytes(recv_count, recv_type), from, recv_tag,
                      comm, used);
    return result;
}

SPT_API int MPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int to, int send_tag, int from,
                                 int recv_tag, MPI_Comm comm, MPI_Status *status) {
    MPI_Status own, *used = status == MPI_STATUS_IGNORE ? &own : status;
    spt_enter();
    int result = PMPI_Sendrecv_replace(buffer, count, type, to, send_tag, from, recv_tag, comm, used);
    if (spt_leave(result))
        note_sendrecv(spt_bytes(count, type), to, send_tag, spt_bytes(count, type), from, recv_tag, comm, used);
    return result;
}

/* ---- probes: a schedule has none, the receive that follows waits for the message ---- */

/* Only its time counts. */
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

/* A matched message is kept among the requests: what is received later is known now. */
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
    if (request) {
        new_request(request, &number)->active = true;
        spt_put((uint64_t)number);
    }
    spt_commit();
}

SPT_API int MPI_Mrecv(void *buffer, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status) {
    int number = spt_message_find(*message);
    spt_enter();
    int result = PMPI_Mrecv(buffer, count, type, message, status);
    if (spt_leave(result))
        note_matched(SPT_RECV, number, spt_bytes(count, type), NULL);
    return result;
}

SPT_API int MPI_Imrecv(void *buffer, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request) {
    int number = spt_message_find(*message);
    spt_enter();
    int result = PMPI_Imrecv(buffer, count, type, message, request);
    if (spt_leave(result))
        note_matched(SPT_IRECV, number, spt_bytes(count, type), request);
    return result;
}

/* ---- persistent requests ---- */

static void keep(int kind, uint64_t bytes, int peer, int tag, MPI_Comm comm, const MPI_Request *request, int parts) {
    int number;
    struct spt_request *entry = new_request(request, &number);
    entry->persistent = true;
    entry->kind = kind;
    entry->bytes = bytes;
    entry->peer = peer;
    entry->tag = tag;
    entry->parts = parts;
    refer(entry, spt_comm_of(comm));
    entry->wild = kind == SPT_IRECV && is_wild(peer, tag);
}

#define PERSISTENT(Name, Kind, Buffer)                                                                                 \
    SPT_API int MPI_##Name(Buffer buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,              \
                           MPI_Request *request) {                                                                     \
        spt_enter();                                                                                                   \
        int result = PMPI_##Name(buffer, count, type, peer, tag, comm, request);                                       \
        if (spt_leave(result))                                                                                         \
            keep(Kind, spt_bytes(count, type), peer, tag, comm, request, 0);                                           \
        return result;                                                                                                 \
    }

PERSISTENT(Send_init, SPT_ISEND, const void *)
PERSISTENT(Bsend_init, SPT_ISEND, const void *)
PERSISTENT(Ssend_init, SPT_ISEND, const void *)
PERSISTENT(Rsend_init, SPT_ISEND, const void *)
PERSISTENT(Recv_init, SPT_IRECV, void *)

/* The message of a persistent request. */
static void launch(int number) {
    struct spt_request *entry = spt_request(number);
    struct spt_comm *comm = entry->comm;
    bool receives = entry->kind == SPT_IRECV;
    int peer = receives ? sender(comm, entry->peer) : spt_world(comm, entry->peer);
    if (peer < 0 && !(receives && entry->peer == MPI_ANY_SOURCE))
        return;
    entry->active = true;
    spt_begin(entry->kind);
    spt_put(comm->number);
    spt_put_envelope(peer, entry->tag);
    spt_put(entry->bytes);
    spt_put((uint64_t)number);
    spt_commit();
}

static void started(MPI_Request request) {
    int number = spt_request_find(request);
    if (number < 0 || !spt_request(number)->persistent)
        return;
    if (spt_request(number)->parts > 0 && spt_request(number)->kind == SPT_ISEND)
        spt_request(number)->ready = 0;
    else
        launch(number);
}

SPT_API int MPI_Start(MPI_Request *request) {
    spt_enter();
    int result = PMPI_Start(request);
    if (spt_leave(result))
        started(*request);
    return result;
}

SPT_API int MPI_Startall(int count, MPI_Request requests[]) {
    spt_enter();
    int result = PMPI_Startall(count, requests);
    if (spt_leave(result))
        for (int index = 0; index < count; index++)
            started(requests[index]);
    return result;
}

/* Open MPI 5 has partitions, though it says MPI 3.1. */
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
/* A partitioned message is one message, sent when its last part is ready. */
SPT_API int MPI_Psend_init(const void *buffer, int parts, MPI_Count count, MPI_Datatype type, int to, int tag,
                           MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spt_enter();
    int result = PMPI_Psend_init(buffer, parts, count, type, to, tag, comm, info, request);
    if (spt_leave(result))
        keep(SPT_ISEND, (uint64_t)parts * spt_bytes(count, type), to, tag, comm, request, parts);
    return result;
}

SPT_API int MPI_Precv_init(void *buffer, int parts, MPI_Count count, MPI_Datatype type, int from, int tag,
                           MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spt_enter();
    int result = PMPI_Precv_init(buffer, parts, count, type, from, tag, comm, info, request);
    if (spt_leave(result))
        keep(SPT_IRECV, (uint64_t)parts * spt_bytes(count, type), from, tag, comm, request, parts);
    return result;
}

static void ready(MPI_Request request, int parts) {
    int number = spt_request_find(request);
    if (number < 0)
        return;
    struct spt_request *entry = spt_request(number);
    entry->ready += parts;
    if (entry->ready == entry->parts)
        launch(number);
}

SPT_API int MPI_Pready(int part, MPI_Request request) {
    spt_enter();
    int result = PMPI_Pready(part, request);
    if (spt_leave(result))
        ready(request, 1);
    return result;
}

SPT_API int MPI_Pready_range(int low, int high, MPI_Request request) {
    spt_enter();
    int result = PMPI_Pready_range(low, high, request);
    if (spt_leave(result))
        ready(request, high - low + 1);
    return result;
}

/* Open MPI 5.0 lacks the standard's const. */
#ifdef OMPI_MAJOR_VERSION
typedef int spt_part;
#else
typedef const int spt_part;
#endif

SPT_API int MPI_Pready_list(int count, spt_part parts[], MPI_Request request) {
    spt_enter();
    int result = PMPI_Pready_list(count, parts, request);
    if (spt_leave(result))
        ready(request, count);
    return result;
}
#endif
