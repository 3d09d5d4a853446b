/* Messages with a tag. */
#include "messages.h"

GROUP(tagged) { messages_of(TAGGED); }
