/* SPDX-License-Identifier: Apache-2.0 */
/* The control entry of an endpoint, which takes remote CQ data (FI_REMOTE_CQ_DATA of fi_rma(3)) and messages about
 * credit. */
#ifndef OFI_CONTROL_H
#define OFI_CONTROL_H

#include "../core/domain.h"

/* Links the entry. Returns a Portals code. */
int spin_ofi_control_start(struct endpoint *ep);
void spin_ofi_control_stop(struct endpoint *ep);

#endif
