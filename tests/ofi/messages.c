/* Messages without a tag. */
#include "messages.h"

GROUP(messages) { messages_of(MSG); }
