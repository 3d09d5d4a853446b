/* Reads a storage trace (experiments/sc17/raid5/spc.h), or makes up a numbered one, and prints it in the same format. */
#include "../../experiments/sc17/raid5/spc.h"

int main(int argc, char **argv) {
    struct spc_trace trace;
    if (argc == 2)
        trace = spc_read(argv[1]);
    else if (argc == 3)
        trace = spc_generate((unsigned)atoi(argv[1]), (size_t)atoi(argv[2]));
    else
        return 2;
    for (size_t i = 0; i < trace.count; i++)
        printf("%" PRIu32 ",%" PRIu64 ",%" PRIu32 ",%c,0\n", trace.requests[i].asu, trace.requests[i].lba,
               trace.requests[i].bytes, trace.requests[i].write ? 'w' : 'r');
    free(trace.requests);
    return 0;
}
