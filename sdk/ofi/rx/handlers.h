/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OFI_HANDLERS_H
#define OFI_HANDLERS_H

#include "../base/wire.h"

/* Header handler of a receive. Its HPU memory is a struct receive_state. */
extern const ptl_header_handler_t spin_ofi_header_handler;

#endif
