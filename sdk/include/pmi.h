/* SPDX-License-Identifier: Apache-2.0 */
/* PMI-1: exchange of addresses among the processes of a job before they communicate.
 *
 * Programs started by spinrun link -lpmi, or load the library that FLUX_PMI_LIBRARY_PATH names, as Open MPI 4 does. All
 * functions return PMI_SUCCESS or another of the codes below, and are thread-safe. Calls take no simulated time;
 * PMI_Barrier blocks until every rank has called it. Except for PMI_Init and PMI_Initialized, a call before PMI_Init
 * returns PMI_ERR_INIT. Strings belong to the caller. The length of a buffer includes the final zero.
 *
 * Each rank is a separate node: libraries that look for other ranks on their node find none, and use the card.
 */
#ifndef PMI_H
#define PMI_H

#ifdef __cplusplus
extern "C" {
#endif

#define PMI_SUCCESS 0
#define PMI_FAIL (-1)                /* refused, or spinrun is unreachable */
#define PMI_ERR_INIT 1               /* before PMI_Init */
#define PMI_ERR_NOMEM 2              /* not returned */
#define PMI_ERR_INVALID_ARG 3        /* a null pointer, or a name with a blank, '=' or a line break */
#define PMI_ERR_INVALID_KEY 4        /* as for names, or no such key */
#define PMI_ERR_INVALID_KEY_LENGTH 5 /* empty, or longer than the maximum */
#define PMI_ERR_INVALID_VAL 6        /* a null pointer, or more than one line */
#define PMI_ERR_INVALID_VAL_LENGTH 7 /* longer than the maximum */
#define PMI_ERR_INVALID_LENGTH 8     /* the caller's buffer is too short */
#define PMI_ERR_INVALID_NUM_ARGS 9   /* this and all below: not returned */
#define PMI_ERR_INVALID_ARGS 10
#define PMI_ERR_INVALID_NUM_PARSED 11
#define PMI_ERR_INVALID_KEYVALP 12
#define PMI_ERR_INVALID_SIZE 13

typedef int PMI_BOOL;
#define PMI_TRUE 1
#define PMI_FALSE 0

typedef struct PMI_keyval_t {
    const char *key;
    char *val;
} PMI_keyval_t;

/* Joins the job and sets *spawned to 0. Later calls repeat this. */
int PMI_Init(int *spawned);
/* *initialized becomes 1 between PMI_Init and PMI_Finalize, else 0. */
int PMI_Initialized(int *initialized);
int PMI_Finalize(void);
/* Prints message, unless it is NULL, and ends the job with exit status exit_code. Does not return. */
int PMI_Abort(int exit_code, const char *message);

int PMI_Get_size(int *size);
int PMI_Get_rank(int *rank);
/* Writes the number of ranks in the job to *size. */
int PMI_Get_universe_size(int *size);
/* Writes the number of this rank's program in the job, from 0 in the order of spinrun's arguments, to *appnum. */
int PMI_Get_appnum(int *appnum);
/* Write the number of ranks on this rank's node, always 1, and their list: only this rank. */
int PMI_Get_clique_size(int *size);
int PMI_Get_clique_ranks(int ranks[], int length);
/* Writes the name of the job, which is also the name of its key-value space, to id. */
int PMI_Get_id(char id[], int length);
int PMI_Get_kvs_domain_id(char id[], int length);
int PMI_Get_id_length_max(int *length);

/* Blocks until every rank of the job has called it. */
int PMI_Barrier(void);

/* Access to the one key-value space of a job. All ranks see a value as soon as it is put; PMI_KVS_Commit does nothing.
 * A later value of a key replaces the earlier one. A value is one line and may contain blanks. A job may put 1 MiB per
 * rank. */
int PMI_KVS_Get_my_name(char kvsname[], int length);
int PMI_KVS_Get_name_length_max(int *length);
int PMI_KVS_Get_key_length_max(int *length);
int PMI_KVS_Get_value_length_max(int *length);
int PMI_KVS_Put(const char kvsname[], const char key[], const char value[]);
int PMI_KVS_Commit(const char kvsname[]);
int PMI_KVS_Get(const char kvsname[], const char key[], char value[], int length);
/* Iterate over all pairs in the order of the first put of each key; the key is empty after the last pair. */
int PMI_KVS_Iter_first(const char kvsname[], char key[], int key_length, char value[], int value_length);
int PMI_KVS_Iter_next(const char kvsname[], char key[], int key_length, char value[], int value_length);
/* Both return PMI_FAIL: there are no other spaces. */
int PMI_KVS_Create(char kvsname[], int length);
int PMI_KVS_Destroy(const char kvsname[]);

/* Names of services, visible to all ranks of the job. port must have room for a value of maximum length. */
int PMI_Publish_name(const char service[], const char port[]);
int PMI_Unpublish_name(const char service[]);
int PMI_Lookup_name(const char service[], char port[]);

/* Returns PMI_FAIL: a simulated job has a fixed number of ranks. */
int PMI_Spawn_multiple(int count, const char *cmds[], const char **argvs[], const int maxprocs[],
                       const int info_keyval_sizes[], const PMI_keyval_t *info_keyval_vectors[], int preput_keyval_size,
                       const PMI_keyval_t preput_keyval_vector[], int errors[]);

#ifdef __cplusplus
}
#endif

#endif
