/* SPDX-License-Identifier: Apache-2.0 */
/* Messages without a tag. */
#include "messages.h"

GROUP(messages) { messages_of(MSG); }
