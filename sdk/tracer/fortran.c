/* SPDX-License-Identifier: Apache-2.0 */
/* Fortran routines that do not call those in C. */
#include "fortran.h"

#if SPT_HAS_FORTRAN
#include <stdlib.h>
#include <string.h>

/* Variables with addresses that stand for constants. */
#ifdef OPEN_MPI
extern int mpi_fortran_bottom_ __attribute__((weak));
extern int mpi_fortran_in_place_ __attribute__((weak));

void *spt_fortran_at(void *address) {
    if (address == &mpi_fortran_bottom_)
        return MPI_BOTTOM;
    return address == &mpi_fortran_in_place_ ? MPI_IN_PLACE : address;
}

static bool ignored(const F *status) {
    const void *address = status;
    return address == MPI_F_STATUS_IGNORE || address == MPI_F_STATUSES_IGNORE;
}
#else
void *spt_fortran_at(void *address) { return address; }

static bool ignored(const F *status) {
    const void *address = status;
    return address == MPI_F08_STATUS_IGNORE || address == MPI_F08_STATUSES_IGNORE;
}
#endif

/* Integers of a status. MPICH has the same status in C and Fortran. */
#define STATUS_SIZE (sizeof(MPI_Status) / sizeof(F))

void spt_fortran_give(const MPI_Status *status, F *to) {
    if (ignored(to))
        return;
#ifdef OPEN_MPI
    PMPI_Status_c2f(status, to);
#else
    memcpy(to, status, sizeof *status);
#endif
}

char *spt_fortran_text(const char *text, size_t length) {
    while (length > 0 && text[length - 1] == ' ')
        length--;
    char *copy = spt_allocate(length + 1, 1);
    memcpy(copy, text, length);
    return copy;
}

/* ---- Environment ---- */

FORTRAN(init, INIT, (F * e), {
    int result = MPI_Init(NULL, NULL);
    if (e)
        *e = result;
})
CALL(init_thread, INIT_THREAD, (F * required, F *provided), MPI_Init_thread(NULL, NULL, *required, provided))
CALL(query_thread, QUERY_THREAD, (F * provided), MPI_Query_thread(provided))
FORTRAN(finalize, FINALIZE, (F * e), {
    int result = MPI_Finalize();
    if (e)
        *e = result;
})
CALL(abort, ABORT, (F * c, F *status), MPI_Abort(C(c), *status))

/* ---- Point-to-point ---- */

#define MESSAGE void *b, F *n, F *t, F *peer, F *tag, F *c
#define MESSAGE_C at(b), *n, T(t), *peer, *tag, C(c)

CALL(send, SEND, (MESSAGE), MPI_Send(MESSAGE_C))
CALL(bsend, BSEND, (MESSAGE), MPI_Bsend(MESSAGE_C))
CALL(ssend, SSEND, (MESSAGE), MPI_Ssend(MESSAGE_C))
CALL(rsend, RSEND, (MESSAGE), MPI_Rsend(MESSAGE_C))

#define MESSAGE_REQUEST(lower, UPPER, Name) MAKES(lower, UPPER, (MESSAGE), Request, MPI_##Name(MESSAGE_C, &fresh))
MESSAGE_REQUEST(isend, ISEND, Isend)
MESSAGE_REQUEST(ibsend, IBSEND, Ibsend)
MESSAGE_REQUEST(issend, ISSEND, Issend)
MESSAGE_REQUEST(irsend, IRSEND, Irsend)
MESSAGE_REQUEST(irecv, IRECV, Irecv)
MESSAGE_REQUEST(send_init, SEND_INIT, Send_init)
MESSAGE_REQUEST(bsend_init, BSEND_INIT, Bsend_init)
MESSAGE_REQUEST(ssend_init, SSEND_INIT, Ssend_init)
MESSAGE_REQUEST(rsend_init, RSEND_INIT, Rsend_init)
MESSAGE_REQUEST(recv_init, RECV_INIT, Recv_init)

WITH_STATUS(recv, RECV, (MESSAGE), MPI_Recv(MESSAGE_C, &status))
WITH_STATUS(sendrecv, SENDRECV, (void *out, F *n, F *t, F *to, F *tag, void *in, F *n2, F *t2, F *from, F *tag2, F *c),
            MPI_Sendrecv(at(out), *n, T(t), *to, *tag, at(in), *n2, T(t2), *from, *tag2, C(c), &status))
WITH_STATUS(sendrecv_replace, SENDRECV_REPLACE, (void *b, F *n, F *t, F *to, F *tag, F *from, F *tag2, F *c),
            MPI_Sendrecv_replace(at(b), *n, T(t), *to, *tag, *from, *tag2, C(c), &status))
WITH_STATUS(probe, PROBE, (F * from, F *tag, F *c), MPI_Probe(*from, *tag, C(c), &status))

FORTRAN(iprobe, IPROBE, (F * from, F *tag, F *c, F *flag, F *s, F *e), {
    MPI_Status status;
    int result = MPI_Iprobe(*from, *tag, C(c), flag, &status);
    if (result == MPI_SUCCESS && *flag)
        spt_fortran_give(&status, s);
    if (e)
        *e = result;
})

FORTRAN(mprobe, MPROBE, (F * from, F *tag, F *c, F *m, F *s, F *e), {
    MPI_Status status;
    MPI_Message message;
    int result = MPI_Mprobe(*from, *tag, C(c), &message, &status);
    if (result == MPI_SUCCESS) {
        *m = PMPI_Message_c2f(message);
        spt_fortran_give(&status, s);
    }
    if (e)
        *e = result;
})

FORTRAN(improbe, IMPROBE, (F * from, F *tag, F *c, F *flag, F *m, F *s, F *e), {
    MPI_Status status;
    MPI_Message message;
    int result = MPI_Improbe(*from, *tag, C(c), flag, &message, &status);
    if (result == MPI_SUCCESS && *flag) {
        *m = PMPI_Message_c2f(message);
        spt_fortran_give(&status, s);
    }
    if (e)
        *e = result;
})

FORTRAN(mrecv, MRECV, (void *b, F *n, F *t, F *m, F *s, F *e), {
    MPI_Status status;
    MPI_Message message = PMPI_Message_f2c(*m);
    int result = MPI_Mrecv(at(b), *n, T(t), &message, &status);
    *m = PMPI_Message_c2f(message);
    if (result == MPI_SUCCESS)
        spt_fortran_give(&status, s);
    if (e)
        *e = result;
})

FORTRAN(imrecv, IMRECV, (void *b, F *n, F *t, F *m, F *r, F *e), {
    MPI_Request request;
    MPI_Message message = PMPI_Message_f2c(*m);
    int result = MPI_Imrecv(at(b), *n, T(t), &message, &request);
    *m = PMPI_Message_c2f(message);
    if (result == MPI_SUCCESS)
        *r = PMPI_Request_c2f(request);
    if (e)
        *e = result;
})

/* ---- Requests ---- */

/* Arrays of requests in C and of their statuses. `finish` frees them. */
struct several {
    int count;
    MPI_Request *requests;
    MPI_Status *statuses;
};

static struct several begin(int count, const F *requests) {
    struct several all = {count, NULL, NULL};
    all.requests = malloc(((size_t)count + 1) * sizeof *all.requests);
    all.statuses = malloc(((size_t)count + 1) * sizeof *all.statuses);
    if (!all.requests || !all.statuses)
        abort();
    for (int index = 0; index < count; index++)
        all.requests[index] = PMPI_Request_f2c(requests[index]);
    return all;
}

/* Copies the requests and the first `filled` statuses back. */
static void finish(struct several all, F *requests, int filled, F *statuses) {
    for (int index = 0; index < all.count; index++)
        requests[index] = PMPI_Request_c2f(all.requests[index]);
    for (int index = 0; index < filled && !ignored(statuses); index++)
        spt_fortran_give(&all.statuses[index], statuses + (size_t)index * STATUS_SIZE);
    free(all.requests);
    free(all.statuses);
}

#define COMPLETES(lower, UPPER, Parameters, count, call, requests, filled, statuses)                                   \
    FORTRAN(lower, UPPER, (UNPACK Parameters, F * e), {                                                                \
        struct several all = begin(count, requests);                                                                   \
        int result = call;                                                                                             \
        finish(all, requests, result == MPI_SUCCESS ? (filled) : 0, statuses);                                         \
        if (e)                                                                                                         \
            *e = result;                                                                                               \
    })

/* Fortran counts from 1. */
static void count_from_one(int count, F *indices) {
    for (int index = 0; index < count; index++)
        indices[index] += indices[index] != MPI_UNDEFINED;
}

COMPLETES(wait, WAIT, (F * r, F *s), 1, MPI_Wait(all.requests, all.statuses), r, 1, s)
COMPLETES(test, TEST, (F * r, F *flag, F *s), 1, MPI_Test(all.requests, flag, all.statuses), r, *flag, s)
COMPLETES(waitall, WAITALL, (F * n, F *r, F *s), *n, MPI_Waitall(*n, all.requests, all.statuses), r, *n, s)
COMPLETES(testall, TESTALL, (F * n, F *r, F *flag, F *s), *n, MPI_Testall(*n, all.requests, flag, all.statuses), r,
          *flag ? *n : 0, s)

static int wait_any(int n, struct several all, F *index) {
    int result = MPI_Waitany(n, all.requests, index, all.statuses);
    count_from_one(1, index);
    return result;
}

static int test_any(int n, struct several all, F *index, F *flag) {
    int result = MPI_Testany(n, all.requests, index, flag, all.statuses);
    if (*flag)
        count_from_one(1, index);
    return result;
}

typedef int some_call(int, MPI_Request *, int *, int *, MPI_Status *);

static int some(some_call *call, int n, struct several all, F *completed, F *indices) {
    int result = call(n, all.requests, completed, indices, all.statuses);
    count_from_one(*completed == MPI_UNDEFINED ? 0 : *completed, indices);
    return result;
}

#define COMPLETED (*completed == MPI_UNDEFINED ? 0 : *completed)

COMPLETES(waitany, WAITANY, (F * n, F *r, F *index, F *s), *n, wait_any(*n, all, index), r, 1, s)
COMPLETES(testany, TESTANY, (F * n, F *r, F *index, F *flag, F *s), *n, test_any(*n, all, index, flag), r, *flag, s)
COMPLETES(waitsome, WAITSOME, (F * n, F *r, F *completed, F *indices, F *s), *n,
          some(MPI_Waitsome, *n, all, completed, indices), r, COMPLETED, s)
COMPLETES(testsome, TESTSOME, (F * n, F *r, F *completed, F *indices, F *s), *n,
          some(MPI_Testsome, *n, all, completed, indices), r, COMPLETED, s)
COMPLETES(start, START, (F * r), 1, MPI_Start(all.requests), r, 0, NULL)
COMPLETES(startall, STARTALL, (F * n, F *r), *n, MPI_Startall(*n, all.requests), r, 0, NULL)
COMPLETES(cancel, CANCEL, (F * r), 1, MPI_Cancel(all.requests), r, 0, NULL)
COMPLETES(request_free, REQUEST_FREE, (F * r), 1, MPI_Request_free(all.requests), r, 0, NULL)

#if SPT_HAS_MPI_4
MAKES(isendrecv, ISENDRECV, (void *out, F *n, F *t, F *to, F *tag, void *in, F *n2, F *t2, F *from, F *tag2, F *c),
      Request, MPI_Isendrecv(at(out), *n, T(t), *to, *tag, at(in), *n2, T(t2), *from, *tag2, C(c), &fresh))
MAKES(isendrecv_replace, ISENDRECV_REPLACE, (void *b, F *n, F *t, F *to, F *tag, F *from, F *tag2, F *c), Request,
      MPI_Isendrecv_replace(at(b), *n, T(t), *to, *tag, *from, *tag2, C(c), &fresh))

/* ---- Partitions ---- */

MAKES(psend_init, PSEND_INIT, (void *b, F *parts, MPI_Count *n, F *t, F *to, F *tag, F *c, F *info), Request,
      MPI_Psend_init(at(b), *parts, *n, T(t), *to, *tag, C(c), I(info), &fresh))
MAKES(precv_init, PRECV_INIT, (void *b, F *parts, MPI_Count *n, F *t, F *from, F *tag, F *c, F *info), Request,
      MPI_Precv_init(at(b), *parts, *n, T(t), *from, *tag, C(c), I(info), &fresh))
CALL(pready, PREADY, (F * part, F *r), MPI_Pready(*part, PMPI_Request_f2c(*r)))
CALL(pready_range, PREADY_RANGE, (F * low, F *high, F *r), MPI_Pready_range(*low, *high, PMPI_Request_f2c(*r)))
CALL(pready_list, PREADY_LIST, (F * n, F *parts, F *r), MPI_Pready_list(*n, parts, PMPI_Request_f2c(*r)))
#endif

#endif
