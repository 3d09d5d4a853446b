/* SPDX-License-Identifier: Apache-2.0 */
/* Point-to-point calls with a count. point.c includes this file for each type of counts: COUNT is the type,
 * MPI(name) and PMPI(name) are the functions. */

#define BLOCKING_SEND(Name)                                                                                            \
    SPT_API int MPI(Name)(const void *buffer, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {        \
        spt_enter();                                                                                                   \
        int result = PMPI(Name)(buffer, count, type, to, tag, comm);                                                   \
        if (spt_leave(result))                                                                                         \
            note_send(SPT_SEND, spt_bytes(count, type), to, tag, comm, NULL);                                          \
        return result;                                                                                                 \
    }

BLOCKING_SEND(Send)
BLOCKING_SEND(Bsend)
BLOCKING_SEND(Ssend)
BLOCKING_SEND(Rsend)

#define NONBLOCKING_SEND(Name)                                                                                         \
    SPT_API int MPI(Name)(const void *buffer, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm,          \
                          MPI_Request *request) {                                                                      \
        spt_enter();                                                                                                   \
        int result = PMPI(Name)(buffer, count, type, to, tag, comm, request);                                          \
        if (spt_leave(result))                                                                                         \
            note_send(SPT_ISEND, spt_bytes(count, type), to, tag, comm, request);                                      \
        return result;                                                                                                 \
    }

NONBLOCKING_SEND(Isend)
NONBLOCKING_SEND(Ibsend)
NONBLOCKING_SEND(Issend)
NONBLOCKING_SEND(Irsend)

SPT_API int MPI(Recv)(void *buffer, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                      MPI_Status *status) {
    MPI_Status own, *used = status == MPI_STATUS_IGNORE ? &own : status;
    spt_enter();
    int result = PMPI(Recv)(buffer, count, type, from, tag, comm, used);
    if (spt_leave(result))
        note_recv(SPT_RECV, spt_bytes(count, type), from, tag, comm, NULL, used);
    return result;
}

SPT_API int MPI(Irecv)(void *buffer, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                       MPI_Request *request) {
    spt_enter();
    int result = PMPI(Irecv)(buffer, count, type, from, tag, comm, request);
    if (spt_leave(result))
        note_recv(SPT_IRECV, spt_bytes(count, type), from, tag, comm, request, NULL);
    return result;
}

SPT_API int MPI(Sendrecv)(const void *out, COUNT send_count, MPI_Datatype send_type, int to, int send_tag, void *in,
                          COUNT recv_count, MPI_Datatype recv_type, int from, int recv_tag, MPI_Comm comm,
                          MPI_Status *status) {
    MPI_Status own, *used = status == MPI_STATUS_IGNORE ? &own : status;
    spt_enter();
    int result =
        PMPI(Sendrecv)(out, send_count, send_type, to, send_tag, in, recv_count, recv_type, from, recv_tag, comm, used);
    if (spt_leave(result))
        note_sendrecv(spt_bytes(send_count, send_type), to, send_tag, spt_bytes(recv_count, recv_type), from, recv_tag,
                      comm, NULL, used);
    return result;
}

SPT_API int MPI(Sendrecv_replace)(void *buffer, COUNT count, MPI_Datatype type, int to, int send_tag, int from,
                                  int recv_tag, MPI_Comm comm, MPI_Status *status) {
    MPI_Status own, *used = status == MPI_STATUS_IGNORE ? &own : status;
    spt_enter();
    int result = PMPI(Sendrecv_replace)(buffer, count, type, to, send_tag, from, recv_tag, comm, used);
    if (spt_leave(result))
        note_sendrecv(spt_bytes(count, type), to, send_tag, spt_bytes(count, type), from, recv_tag, comm, NULL, used);
    return result;
}

#if SPT_HAS_MPI_4
SPT_API int MPI(Isendrecv)(const void *out, COUNT send_count, MPI_Datatype send_type, int to, int send_tag, void *in,
                           COUNT recv_count, MPI_Datatype recv_type, int from, int recv_tag, MPI_Comm comm,
                           MPI_Request *request) {
    spt_enter();
    int result = PMPI(Isendrecv)(out, send_count, send_type, to, send_tag, in, recv_count, recv_type, from, recv_tag,
                                 comm, request);
    if (spt_leave(result))
        note_sendrecv(spt_bytes(send_count, send_type), to, send_tag, spt_bytes(recv_count, recv_type), from, recv_tag,
                      comm, request, NULL);
    return result;
}

SPT_API int MPI(Isendrecv_replace)(void *buffer, COUNT count, MPI_Datatype type, int to, int send_tag, int from,
                                   int recv_tag, MPI_Comm comm, MPI_Request *request) {
    spt_enter();
    int result = PMPI(Isendrecv_replace)(buffer, count, type, to, send_tag, from, recv_tag, comm, request);
    if (spt_leave(result))
        note_sendrecv(spt_bytes(count, type), to, send_tag, spt_bytes(count, type), from, recv_tag, comm, request,
                      NULL);
    return result;
}
#endif

SPT_API int MPI(Mrecv)(void *buffer, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Status *status) {
    int number = spt_message_find(*message);
    spt_enter();
    int result = PMPI(Mrecv)(buffer, count, type, message, status);
    if (spt_leave(result))
        note_matched(SPT_RECV, number, spt_bytes(count, type), NULL);
    return result;
}

SPT_API int MPI(Imrecv)(void *buffer, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Request *request) {
    int number = spt_message_find(*message);
    spt_enter();
    int result = PMPI(Imrecv)(buffer, count, type, message, request);
    if (spt_leave(result))
        note_matched(SPT_IRECV, number, spt_bytes(count, type), request);
    return result;
}

#define PERSISTENT(Name, Kind, Buffer)                                                                                 \
    SPT_API int MPI(Name)(Buffer buffer, COUNT count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,             \
                          MPI_Request *request) {                                                                      \
        spt_enter();                                                                                                   \
        int result = PMPI(Name)(buffer, count, type, peer, tag, comm, request);                                        \
        if (spt_leave(result))                                                                                         \
            spt_keep_message(Kind, spt_bytes(count, type), peer, tag, comm, request, 0);                               \
        return result;                                                                                                 \
    }

PERSISTENT(Send_init, SPT_ISEND, const void *)
PERSISTENT(Bsend_init, SPT_ISEND, const void *)
PERSISTENT(Ssend_init, SPT_ISEND, const void *)
PERSISTENT(Rsend_init, SPT_ISEND, const void *)
PERSISTENT(Recv_init, SPT_IRECV, void *)

#undef BLOCKING_SEND
#undef NONBLOCKING_SEND
#undef PERSISTENT
#undef COUNT
#undef MPI
#undef PMPI
