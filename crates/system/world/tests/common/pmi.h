/* SPDX-License-Identifier: Apache-2.0 */
/* PMI-1 client, like that of programs for MPICH's process managers. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PMI_CLIENT static __attribute__((unused))

static int pmi_fd;
static char pmi_answer[2048];

PMI_CLIENT int pmi_env(const char *name) {
    const char *value = getenv(name);
    return value ? atoi(value) : -1;
}

/* Sends a request line and returns the reply line. */
PMI_CLIENT const char *pmi_ask(const char *format, ...) {
    char line[2048];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (write(pmi_fd, line, length) != length)
        exit(90);
    size_t have = 0;
    do {
        ssize_t more = read(pmi_fd, pmi_answer + have, sizeof pmi_answer - 1 - have);
        if (more <= 0)
            exit(91);
        have += more;
    } while (pmi_answer[have - 1] != '\n');
    pmi_answer[have - 1] = 0;
    return pmi_answer;
}

/* Returns the value of a field of the last reply, or an empty string. */
PMI_CLIENT const char *pmi_field(const char *name) {
    static char value[1100];
    char pattern[80];
    snprintf(pattern, sizeof pattern, " %s=", name);
    const char *start = strstr(pmi_answer, pattern);
    if (!start)
        return "";
    start += strlen(pattern);
    snprintf(value, sizeof value, "%.*s", (int)strcspn(start, " "), start);
    return value;
}

PMI_CLIENT void pmi_init(void) {
    pmi_fd = pmi_env("PMI_FD");
    if (strcmp(pmi_ask("cmd=init pmi_version=1 pmi_subversion=1\n"),
               "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"))
        exit(92);
}

PMI_CLIENT void pmi_barrier(void) {
    if (strncmp(pmi_ask("cmd=barrier_in\n"), "cmd=barrier_out", 15))
        exit(93);
}

PMI_CLIENT void pmi_finalize(void) {
    if (strncmp(pmi_ask("cmd=finalize\n"), "cmd=finalize_ack", 16))
        exit(94);
    close(pmi_fd);
}
