/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators and requests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

/* ---- Communicators: each has its description as an attribute ---- */

static int keyval = MPI_KEYVAL_INVALID;
static uint64_t comms;
static MPI_Group world_group;

void spt_comm_release(struct spt_comm *comm) {
    if (--comm->references == 0) {
        free(comm->world);
        free(comm->in.peers);
        free(comm->out.peers);
        free(comm);
    }
}

static int freed(MPI_Comm comm, int of, void *value, void *extra) {
    (void)comm, (void)of, (void)extra;
    spt_comm_release(value);
    return MPI_SUCCESS;
}

/* Returns the ranks of a group in MPI_COMM_WORLD, -1 for a process outside of it. The caller frees them. */
static int *translate(MPI_Group group, int *size) {
    PMPI_Group_size(group, size);
    int *own = spt_allocate((size_t)*size, sizeof *own), *world = spt_allocate((size_t)*size, sizeof *world);
    for (int rank = 0; rank < *size; rank++)
        own[rank] = rank;
    PMPI_Group_translate_ranks(group, *size, own, world_group, world);
    for (int rank = 0; rank < *size; rank++)
        if (world[rank] == MPI_UNDEFINED)
            world[rank] = -1;
    free(own);
    return world;
}

/* Returns the length of the run with constant stride that starts at `from`. */
static int run_length(const int *ranks, int from, int size) {
    int end = from + 1;
    while (end < size && ranks[end] - ranks[end - 1] == ranks[from + 1] - ranks[from])
        end++;
    return end - from;
}

static void put_ranks(const int *ranks, int size) {
    uint64_t runs = 0;
    for (int from = 0; from < size; from += run_length(ranks, from, size))
        runs++;
    spt_put(runs);
    for (int from = 0, length; from < size; from += length) {
        length = run_length(ranks, from, size);
        int64_t stride = length > 1 ? ranks[from + 1] - ranks[from] : 0;
        spt_put((uint64_t)(int64_t)ranks[from]);
        spt_put((uint64_t)length);
        spt_put((uint64_t)stride << 1 ^ (uint64_t)(stride >> 63));
    }
}

void spt_put_group(MPI_Group group) {
    int size, *ranks = translate(group, &size);
    put_ranks(ranks, size);
    free(ranks);
}

struct spt_comm *spt_comm_like(MPI_Comm comm) {
    struct spt_comm *new = spt_allocate(1, sizeof *new);
    int is_inter, local_size;
    MPI_Group group;
    new->number = comms++;
    new->references = 1;
    PMPI_Comm_rank(comm, &new->me);
    PMPI_Comm_test_inter(comm, &is_inter);
    new->inter = is_inter;
    PMPI_Comm_group(comm, &group);
    int *local = translate(group, &local_size);
    PMPI_Group_free(&group);
    spt_begin(SPT_COMM);
    spt_put(new->number);
    spt_put(new->inter);
    put_ranks(local, local_size);
    if (new->inter) {
        PMPI_Comm_remote_group(comm, &group);
        new->world = translate(group, &new->size);
        PMPI_Group_free(&group);
        put_ranks(new->world, new->size);
        free(local);
    } else {
        new->world = local;
        new->size = local_size;
    }
    spt_commit();
    return new;
}

void spt_comm_is(MPI_Comm comm, struct spt_comm *known) { PMPI_Comm_set_attr(comm, keyval, known); }

static struct spt_comm *describe(MPI_Comm comm) {
    struct spt_comm *new = spt_comm_like(comm);
    spt_comm_is(comm, new);
    return new;
}

struct spt_comm *spt_comm_of(MPI_Comm comm) {
    struct spt_comm *known;
    int found;
    PMPI_Comm_get_attr(comm, keyval, &known, &found);
    return found ? known : describe(comm);
}

void spt_handles_start(void) {
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, freed, &keyval, NULL);
    PMPI_Comm_group(MPI_COMM_WORLD, &world_group);
    describe(MPI_COMM_WORLD);
    describe(MPI_COMM_SELF);
}

int spt_world(const struct spt_comm *comm, int rank) { return rank < 0 || rank >= comm->size ? -1 : comm->world[rank]; }

static struct spt_neighbors world_ranks(const struct spt_comm *comm, const int *ranks, int count) {
    struct spt_neighbors all = {.count = count, .peers = spt_allocate((size_t)count, sizeof(int))};
    for (int index = 0; index < count; index++)
        all.peers[index] = spt_world(comm, ranks[index]);
    return all;
}

void spt_count_neighbors(MPI_Comm comm, int *in, int *out) {
    int topology, me, weighted;
    *in = *out = 0;
    PMPI_Topo_test(comm, &topology);
    if (topology == MPI_CART) {
        PMPI_Cartdim_get(comm, in);
        *out = *in *= 2;
    } else if (topology == MPI_GRAPH) {
        PMPI_Comm_rank(comm, &me);
        PMPI_Graph_neighbors_count(comm, me, in);
        *out = *in;
    } else if (topology == MPI_DIST_GRAPH) {
        PMPI_Dist_graph_neighbors_count(comm, in, out, &weighted);
    }
}

/* Order of neighbours: MPI 4.1 §8.6. */
void spt_find_neighbors(MPI_Comm comm, struct spt_comm *known) {
    int topology, in, out;
    if (known->has_neighbors)
        return;
    known->has_neighbors = true;
    PMPI_Topo_test(comm, &topology);
    spt_count_neighbors(comm, &in, &out);
    int *sources = spt_allocate((size_t)in, sizeof *sources), *targets = spt_allocate((size_t)out, sizeof *targets);
    if (topology == MPI_CART) {
        for (int side = 0; side < in; side += 2)
            PMPI_Cart_shift(comm, side / 2, 1, &sources[side], &sources[side + 1]);
        memcpy(targets, sources, (size_t)in * sizeof *sources);
    } else if (topology == MPI_GRAPH) {
        PMPI_Graph_neighbors(comm, known->me, in, sources);
        memcpy(targets, sources, (size_t)in * sizeof *sources);
    } else if (topology == MPI_DIST_GRAPH) {
        int *in_weights = spt_allocate((size_t)in, sizeof(int)), *out_weights = spt_allocate((size_t)out, sizeof(int));
        PMPI_Dist_graph_neighbors(comm, in, sources, in_weights, out, targets, out_weights);
        free(in_weights);
        free(out_weights);
    }
    known->in = world_ranks(known, sources, in);
    known->out = world_ranks(known, targets, out);
    free(sources);
    free(targets);
}

/* ---- Requests: a hash table from handles to numbered entries ----
 *
 * MPICH gives the same handle to all sends that complete at once, so a handle may occur more than once. */

static struct spt_request *entries;
static int *buckets; /* first entry of each, -1 for none */
static int capacity; /* capacity of both tables; a power of two */
static int free_entry = -1;

/* Handles are numbers or pointers. Inverted bits distinguish handles of messages from those of requests. */
static uint64_t key_of_request(MPI_Request request) {
    uint64_t bits = 0;
    memcpy(&bits, &request, sizeof request);
    return bits;
}

static uint64_t key_of_message(MPI_Message message) {
    uint64_t bits = 0;
    memcpy(&bits, &message, sizeof message);
    return ~bits;
}

static int *bucket(uint64_t of) { return &buckets[of * 0x9e3779b97f4a7c15u >> 32 & (unsigned)(capacity - 1)]; }

static void grow(void) {
    int before = capacity;
    capacity = before ? 2 * before : 256;
    entries = realloc(entries, (size_t)capacity * sizeof *entries);
    buckets = realloc(buckets, (size_t)capacity * sizeof *buckets);
    if (!entries || !buckets) {
        fprintf(stderr, "spintrace: out of memory\n");
        abort();
    }
    memset(buckets, -1, (size_t)capacity * sizeof *buckets);
    for (int number = 0; number < before; number++) {
        int *first = bucket(entries[number].key);
        entries[number].next = *first;
        *first = number;
    }
    for (int number = capacity - 1; number >= before; number--) {
        entries[number].next = free_entry;
        free_entry = number;
    }
}

static int insert(uint64_t key) {
    if (free_entry < 0)
        grow();
    int number = free_entry, *first = bucket(key);
    free_entry = entries[number].next;
    entries[number] = (struct spt_request){.key = key, .next = *first};
    *first = number;
    return number;
}

static int find(uint64_t key) {
    int number = capacity ? *bucket(key) : -1;
    while (number >= 0 && entries[number].key != key)
        number = entries[number].next;
    return number;
}

int spt_request_new(MPI_Request request) { return insert(key_of_request(request)); }

int spt_request_find(MPI_Request request) { return request == MPI_REQUEST_NULL ? -1 : find(key_of_request(request)); }

int spt_request_claim(MPI_Request request) {
    if (request == MPI_REQUEST_NULL)
        return -1;
    int number = find(key_of_request(request));
    while (number >= 0 &&
           (entries[number].key != key_of_request(request) || !entries[number].active || entries[number].claimed))
        number = entries[number].next;
    if (number >= 0)
        entries[number].claimed = true;
    return number;
}

int spt_message_new(MPI_Message message) { return insert(key_of_message(message)); }

int spt_message_find(MPI_Message message) { return find(key_of_message(message)); }

struct spt_request *spt_request(int number) { return &entries[number]; }

void spt_request_delete(int number) {
    int *link = bucket(entries[number].key);
    while (*link != number)
        link = &entries[*link].next;
    *link = entries[number].next;
    if (entries[number].comm)
        spt_comm_release(entries[number].comm);
    free(entries[number].fields);
    free(entries[number].kept);
    entries[number].next = free_entry;
    free_entry = number;
}
