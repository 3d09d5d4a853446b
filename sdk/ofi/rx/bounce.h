/* SPDX-License-Identifier: Apache-2.0 */
/* Bounce buffers: memory for messages without a receive.
 *
 * On a card that matches, a message without a receive lands in a buffer of the overflow list, and the card finds it
 * there when its receive is appended. Otherwise every message lands in a buffer, and the CPU finds its receive and
 * copies it. */
#ifndef OFI_BOUNCE_H
#define OFI_BOUNCE_H

#include "../core/domain.h"

enum { ANY_BUFFERS = 8 }; /* buffers for each kind of messages that an endpoint keeps linked at least */
enum { BUFFER_SIZE = 1 << 20 };

/* Links buffers for messages of this kind until they have room for all messages that may be in flight. Returns a
 * Portals code. */
int spin_ofi_bounce_link(struct endpoint *ep, enum kind kind);
/* Unlinks all buffers. */
void spin_ofi_bounce_unlink(struct endpoint *ep);
/* Frees all buffers, which are unlinked. */
void spin_ofi_bounce_release(struct endpoint *ep);
/* Returns the buffer that holds the bytes at `start`, or NULL. */
struct buffer *spin_ofi_bounce_find(const struct endpoint *ep, const unsigned char *start);
/* Keeps a buffer from being linked again while a message in it is needed, until the drop. The buffer may be NULL. */
void spin_ofi_bounce_hold(struct buffer *buffer);
void spin_ofi_bounce_drop(struct buffer *buffer);
/* Reports a message that the card could not write to memory. */
void spin_ofi_bounce_lost(const ptl_event_t *event);

#endif
