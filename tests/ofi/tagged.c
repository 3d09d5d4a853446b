/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with a tag. */
#include "messages.h"

GROUP(tagged) { messages_of(TAGGED); }
