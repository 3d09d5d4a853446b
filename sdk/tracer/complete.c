/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that complete requests. */
#include <stdio.h>
#include <stdlib.h>

#include "trace.h"

/* Numbers of requests and statuses of one call. Each thread reuses its memory. */
static __thread struct {
    int *numbers;
    MPI_Status *statuses;
    int capacity;
} scratch;

/* Returns the numbers of the requests, which do not exist after the call. They are valid until the next call. */
static const int *numbers_of(int count, const MPI_Request *requests) {
    if (count >= scratch.capacity) {
        scratch.capacity = 2 * count + 8;
        scratch.numbers = realloc(scratch.numbers, (size_t)scratch.capacity * sizeof *scratch.numbers);
        scratch.statuses = realloc(scratch.statuses, (size_t)scratch.capacity * sizeof *scratch.statuses);
        if (!scratch.numbers || !scratch.statuses) {
            fprintf(stderr, "spintrace: out of memory\n");
            abort();
        }
    }
    for (int index = 0; index < count; index++)
        scratch.numbers[index] = spt_request_claim(requests[index]);
    for (int index = 0; index < count; index++)
        if (scratch.numbers[index] >= 0)
            spt_request(scratch.numbers[index])->claimed = false;
    return scratch.numbers;
}

static MPI_Status *status_or_own(MPI_Status *status) {
    return status == MPI_STATUS_IGNORE || status == MPI_STATUSES_IGNORE ? scratch.statuses : status;
}

static void complete(int number, const MPI_Status *status) {
    struct spt_request *request = spt_request(number);
    int cancelled = 0;
    if (request->cancelled)
        PMPI_Test_cancelled(status, &cancelled);
    bool has_actual = request->wild && !cancelled;
    spt_put((uint64_t)number * 4 + (cancelled ? 1 : 0) + (has_actual ? 2 : 0));
    if (has_actual)
        spt_put_actual(request->comm, status);
    if (request->made) {
        request->comm->references++;
        spt_comm_is(*request->made, request->comm);
    }
    request->active = false;
    if (!request->persistent)
        spt_request_delete(number);
}

/* Records the completion of `count` requests of a call: those with these indices, or all for NULL. Status `i`
 * belongs to the i-th. */
static void note_completed(int count, const int *indices, const int *numbers, const MPI_Status *statuses) {
    int known = 0;
    for (int index = 0; index < count; index++)
        known += numbers[indices ? indices[index] : index] >= 0;
    if (known == 0)
        return;
    spt_begin(SPT_WAIT);
    spt_put((uint64_t)known);
    for (int index = 0; index < count; index++) {
        int number = numbers[indices ? indices[index] : index];
        if (number >= 0)
            complete(number, &statuses[index]);
    }
    spt_commit();
}

SPT_API int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    spt_enter();
    const int *numbers = numbers_of(1, request);
    MPI_Status *used = status_or_own(status);
    int result = PMPI_Wait(request, used);
    if (spt_leave(result))
        note_completed(1, NULL, numbers, used);
    return result;
}

SPT_API int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    spt_enter();
    const int *numbers = numbers_of(1, request);
    MPI_Status *used = status_or_own(status);
    int result = PMPI_Test(request, flag, used);
    if (spt_leave(result) && *flag)
        note_completed(1, NULL, numbers, used);
    return result;
}

SPT_API int MPI_Waitall(int count, MPI_Request requests[], MPI_Status *statuses) {
    spt_enter();
    const int *numbers = numbers_of(count, requests);
    MPI_Status *used = status_or_own(statuses);
    int result = PMPI_Waitall(count, requests, used);
    if (spt_leave(result))
        note_completed(count, NULL, numbers, used);
    return result;
}

SPT_API int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status *statuses) {
    spt_enter();
    const int *numbers = numbers_of(count, requests);
    MPI_Status *used = status_or_own(statuses);
    int result = PMPI_Testall(count, requests, flag, used);
    if (spt_leave(result) && *flag)
        note_completed(count, NULL, numbers, used);
    return result;
}

SPT_API int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status) {
    spt_enter();
    const int *numbers = numbers_of(count, requests);
    MPI_Status *used = status_or_own(status);
    int result = PMPI_Waitany(count, requests, index, used);
    if (spt_leave(result) && *index != MPI_UNDEFINED)
        note_completed(1, index, numbers, used);
    return result;
}

SPT_API int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status) {
    spt_enter();
    const int *numbers = numbers_of(count, requests);
    MPI_Status *used = status_or_own(status);
    int result = PMPI_Testany(count, requests, index, flag, used);
    if (spt_leave(result) && *flag && *index != MPI_UNDEFINED)
        note_completed(1, index, numbers, used);
    return result;
}

#define SOME(Name)                                                                                                     \
    SPT_API int MPI_##Name(int count, MPI_Request requests[], int *completed, int indices[], MPI_Status *statuses) {   \
        spt_enter();                                                                                                   \
        const int *numbers = numbers_of(count, requests);                                                              \
        MPI_Status *used = status_or_own(statuses);                                                                    \
        int result = PMPI_##Name(count, requests, completed, indices, used);                                           \
        if (spt_leave(result) && *completed != MPI_UNDEFINED)                                                          \
            note_completed(*completed, indices, numbers, used);                                                        \
        return result;                                                                                                 \
    }

SOME(Waitsome)
SOME(Testsome)

SPT_API int MPI_Cancel(MPI_Request *request) {
    int number = spt_request_find(*request);
    spt_enter();
    int result = PMPI_Cancel(request);
    if (spt_leave(result) && number >= 0)
        spt_request(number)->cancelled = true;
    return result;
}

SPT_API int MPI_Request_free(MPI_Request *request) {
    int number = spt_request_find(*request);
    spt_enter();
    int result = PMPI_Request_free(request);
    if (spt_leave(result) && number >= 0) {
        if (spt_request(number)->active) {
            spt_begin(SPT_FREE);
            spt_put((uint64_t)number);
            spt_commit();
        }
        spt_request_delete(number);
    }
    return result;
}
