#include <handler.h>

int answer(void);

int answer(void) { return ANSWER; }
