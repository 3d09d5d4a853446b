/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of records about messages. */
#include "trace.h"

uint64_t spt_bytes(int64_t count, MPI_Datatype type) {
    MPI_Count size;
    /* A count of 0 permits MPI_DATATYPE_NULL. */
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

bool spt_is_wild(int from, int tag) { return from == MPI_ANY_SOURCE || tag == MPI_ANY_TAG; }

int spt_sender(const struct spt_comm *comm, int from) { return from == MPI_ANY_SOURCE ? -1 : spt_world(comm, from); }
