/* SPDX-License-Identifier: Apache-2.0 */
/* Persistent requests. Each start records their message or collective. */
#include "trace.h"

struct spt_request *spt_keep(int kind, MPI_Comm comm, const MPI_Request *request) {
    struct spt_comm *known = spt_comm_of(comm);
    struct spt_request *entry = spt_request(spt_request_new(*request));
    entry->persistent = true;
    entry->kind = kind;
    entry->comm = known;
    known->references++;
    return entry;
}

void spt_keep_message(int kind, uint64_t bytes, int peer, int tag, MPI_Comm comm, const MPI_Request *request,
                      int parts) {
    struct spt_request *entry = spt_keep(kind, comm, request);
    entry->bytes = bytes;
    entry->peer = peer;
    entry->tag = tag;
    entry->parts = parts;
    entry->wild = kind == SPT_IRECV && spt_is_wild(peer, tag);
}

static void launch_collective(int number) {
    struct spt_request *entry = spt_request(number);
    entry->active = true;
    spt_begin(entry->kind | SPT_NONBLOCKING);
    spt_put(entry->comm->number);
    spt_put((uint64_t)number);
    spt_put_bytes(entry->fields, entry->length);
    spt_commit();
}

static void launch_message(int number) {
    struct spt_request *entry = spt_request(number);
    struct spt_comm *comm = entry->comm;
    bool receives = entry->kind == SPT_IRECV;
    int peer = receives ? spt_sender(comm, entry->peer) : spt_world(comm, entry->peer);
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
    struct spt_request *entry = spt_request(number);
    if (entry->kind >= SPT_BARRIER)
        launch_collective(number);
    else if (entry->parts > 0 && entry->kind == SPT_ISEND)
        entry->ready = 0;
    else
        launch_message(number);
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

#if SPT_HAS_MPI_4
/* A partitioned message is one message, which the last part that is ready sends. */
SPT_API int MPI_Psend_init(const void *buffer, int parts, MPI_Count count, MPI_Datatype type, int to, int tag,
                           MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spt_enter();
    int result = PMPI_Psend_init(buffer, parts, count, type, to, tag, comm, info, request);
    if (spt_leave(result))
        spt_keep_message(SPT_ISEND, (uint64_t)parts * spt_bytes(count, type), to, tag, comm, request, parts);
    return result;
}

SPT_API int MPI_Precv_init(void *buffer, int parts, MPI_Count count, MPI_Datatype type, int from, int tag,
                           MPI_Comm comm, MPI_Info info, MPI_Request *request) {
    spt_enter();
    int result = PMPI_Precv_init(buffer, parts, count, type, from, tag, comm, info, request);
    if (spt_leave(result))
        spt_keep_message(SPT_IRECV, (uint64_t)parts * spt_bytes(count, type), from, tag, comm, request, parts);
    return result;
}

static void ready(MPI_Request request, int parts) {
    int number = spt_request_find(request);
    if (number < 0)
        return;
    struct spt_request *entry = spt_request(number);
    entry->ready += parts;
    if (entry->ready == entry->parts)
        launch_message(number);
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

/* Some versions of mpi.h lack the const of the standard, so an alias exports the function. */
__attribute__((used)) static int pready_list(int count, const int parts[], MPI_Request request) {
    spt_enter();
    int result = PMPI_Pready_list(count, (void *)parts, request);
    if (spt_leave(result))
        ready(request, count);
    return result;
}

SPT_API extern __typeof__(MPI_Pready_list) MPI_Pready_list __attribute__((alias("pready_list")));
#endif
