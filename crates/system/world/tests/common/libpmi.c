/* SPDX-License-Identifier: Apache-2.0 */
/* Calls every function of pmi.h in a job of three ranks; the last rank aborts at the end. */
#include <pmi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call, expected)                                                                                          \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != (expected)) {                                                                                       \
            fprintf(stderr, "line %d: %d\n", __LINE__, rc_);                                                           \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define OK(call) CHECK(call, PMI_SUCCESS)
#define IS(text, expected) CHECK(strcmp(text, expected), 0)

static int rank, size;
static char space[300], key[300], value[2000], expected[300];

static void identity(void) {
    int number = 7, ranks[2] = {7, 7};
    OK(PMI_Initialized(&number));
    CHECK(number, 0);
    CHECK(PMI_Get_rank(&rank), PMI_ERR_INIT);
    OK(PMI_Init(&number));
    CHECK(number, 0);
    OK(PMI_Initialized(&number));
    CHECK(number, 1);
    OK(PMI_Get_rank(&rank));
    CHECK(rank, atoi(getenv("PMI_RANK")));
    OK(PMI_Get_size(&size));
    CHECK(size, 3);
    OK(PMI_Get_universe_size(&number));
    CHECK(number, 3);
    OK(PMI_Get_appnum(&number));
    CHECK(number, 0);
    OK(PMI_Get_clique_size(&number));
    CHECK(number, 1);
    OK(PMI_Get_clique_ranks(ranks, 2));
    CHECK(ranks[0], rank);
    CHECK(ranks[1], 7);
    CHECK(PMI_Get_clique_ranks(ranks, 0), PMI_ERR_INVALID_LENGTH);
    CHECK(PMI_Get_rank(NULL), PMI_ERR_INVALID_ARG);
    OK(PMI_KVS_Get_name_length_max(&number));
    CHECK(number, 256);
    OK(PMI_Get_id_length_max(&number));
    CHECK(number, 256);
    OK(PMI_KVS_Get_key_length_max(&number));
    CHECK(number, 64);
    OK(PMI_KVS_Get_value_length_max(&number));
    CHECK(number, 1024);
    OK(PMI_KVS_Get_my_name(space, sizeof space));
    CHECK(strncmp(space, "kvs_spin_", 9), 0);
    CHECK(PMI_KVS_Get_my_name(value, (int)strlen(space)), PMI_ERR_INVALID_LENGTH);
    OK(PMI_KVS_Get_my_name(value, (int)strlen(space) + 1));
    IS(value, space);
    OK(PMI_Get_id(value, sizeof value));
    IS(value, space);
    OK(PMI_Get_kvs_domain_id(value, sizeof value));
    IS(value, space);
}

static void pairs(void) {
    sprintf(key, "key%d", rank);
    sprintf(value, "the value = of %d", rank);
    OK(PMI_KVS_Put(space, key, value));
    CHECK(PMI_KVS_Put(space, "a b", value), PMI_ERR_INVALID_KEY);
    CHECK(PMI_KVS_Put(space, "", value), PMI_ERR_INVALID_KEY_LENGTH);
    CHECK(PMI_KVS_Put(space, key, "two\nlines"), PMI_ERR_INVALID_VAL);
    CHECK(PMI_KVS_Put("other", key, value), PMI_FAIL);
    memset(value, 'v', sizeof value);
    value[1025] = 0;
    CHECK(PMI_KVS_Put(space, key, value), PMI_ERR_INVALID_VAL_LENGTH);
    OK(PMI_KVS_Commit(space));
    OK(PMI_Barrier());
    for (int other = 0; other < size; other++) {
        sprintf(key, "key%d", other);
        sprintf(expected, "the value = of %d", other);
        OK(PMI_KVS_Get(space, key, value, sizeof value));
        IS(value, expected);
    }
    CHECK(PMI_KVS_Get(space, key, value, 8), PMI_ERR_INVALID_LENGTH);
    CHECK(PMI_KVS_Get(space, "nothing", value, sizeof value), PMI_ERR_INVALID_KEY);
    int count = 0;
    OK(PMI_KVS_Iter_first(space, key, sizeof key, value, sizeof value));
    IS(key, "PMI_process_mapping");
    IS(value, "(vector,(0,3,1))");
    for (;; count++) {
        OK(PMI_KVS_Iter_next(space, key, sizeof key, value, sizeof value));
        if (!*key)
            break;
        sprintf(expected, "the value = of %s", key + 3);
        IS(value, expected);
    }
    CHECK(count, size);
    CHECK(PMI_KVS_Create(value, sizeof value), PMI_FAIL);
    CHECK(PMI_KVS_Destroy(space), PMI_FAIL);
}

static void services(void) {
    if (rank == 0)
        OK(PMI_Publish_name("service", "a port"));
    OK(PMI_Barrier());
    OK(PMI_Lookup_name("service", value));
    IS(value, "a port");
    OK(PMI_Barrier());
    if (rank == 1)
        OK(PMI_Unpublish_name("service"));
    OK(PMI_Barrier());
    CHECK(PMI_Lookup_name("service", value), PMI_FAIL);
    CHECK(PMI_Spawn_multiple(0, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL), PMI_FAIL);
}

int main(void) {
    int spawned;
    identity();
    pairs();
    services();
    OK(PMI_Finalize());
    CHECK(PMI_Finalize(), PMI_ERR_INIT);
    OK(PMI_Init(&spawned));
    if (rank == 2)
        PMI_Abort(0, "rank 2 gives up");
    OK(PMI_Barrier());
    return 0;
}
