/* SPDX-License-Identifier: Apache-2.0 */
/* Error numbers, and messages on standard error. */
#ifndef OFI_ERROR_H
#define OFI_ERROR_H

#include "libfabric.h"

#define SPIN_NO_SHORT_NAMES
#include <spin.h>

/* Prints a line with the rank on standard error. The arguments are those of printf(3); longer lines are cut at 511
 * bytes. */
__attribute__((format(printf, 1, 2))) void spin_ofi_complain(const char *format, ...);

/* Returns the positive error number (fi_errno(3)) for a return code of Portals, 0 for PTL_OK. */
int spin_ofi_errno(int return_code);
/* Returns the result of a libfabric call that posts an operation: 0, or a negative error number. A full table of the
 * card gives -FI_EAGAIN, because it has room again once operations complete. */
ssize_t spin_ofi_result(int return_code);
/* Returns the positive error number (fi_errno(3)) for the failure in an event of the card (Portals 4.3 §3.13), 0 for
 * PTL_NI_OK. */
int spin_ofi_event_errno(ptl_ni_fail_t failure);

#endif
