/* SPDX-License-Identifier: Apache-2.0 */
/* Searches for messages without a receive, and the messages that they claim (FI_PEEK, FI_CLAIM and FI_DISCARD of
 * fi_tagged(3)). */
#ifndef OFI_PEEK_H
#define OFI_PEEK_H

#include "recv.h"

/* Searches for a message. Returns 0 or a negative error number; without a message the search completes with
 * FI_ENOMSG. */
ssize_t spin_ofi_peek(struct endpoint *ep, const struct recv *call);
/* Receives or discards the message that the search with the same context has claimed. Returns 0 or a negative error
 * number: -FI_EINVAL if no message is claimed. */
ssize_t spin_ofi_claim(struct endpoint *ep, const struct recv *call);

#endif
