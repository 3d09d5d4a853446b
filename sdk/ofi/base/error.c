/* SPDX-License-Identifier: Apache-2.0 */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>

void spin_ofi_complain(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "spin-fi: rank %d: %s\n", spin_rank(), text);
}

int spin_ofi_errno(int return_code) {
    switch (return_code) {
    case PTL_OK: return 0;
    case PTL_ARG_INVALID: return EINVAL;
    case PTL_NO_SPACE:
    case PTL_LIST_TOO_LONG:
    case PTL_PT_FULL: return ENOSPC;
    case PTL_IN_USE:
    case PTL_PT_IN_USE: return EBUSY;
    case PTL_INTERRUPTED:
    case PTL_ABORTED: return EINTR;
    default: return EIO;
    }
}

ssize_t spin_ofi_result(int return_code) {
    return return_code == PTL_NO_SPACE || return_code == PTL_LIST_TOO_LONG ? -EAGAIN : -spin_ofi_errno(return_code);
}

int spin_ofi_event_errno(ptl_ni_fail_t failure) {
    switch (failure) {
    case PTL_NI_OK: return 0;
    case PTL_NI_UNDELIVERABLE: return EHOSTUNREACH;
    case PTL_NI_PERM_VIOLATION:
    case PTL_NI_OP_VIOLATION: return EACCES;
    case PTL_NI_NO_MATCH: return ENOMSG;
    case PTL_NI_SEGV: return EFAULT;
    case PTL_NI_DROPPED: return FI_ENOKEY;
    case PTL_NI_PT_DISABLED: return FI_EOVERRUN;
    default: return EIO;
    }
}
