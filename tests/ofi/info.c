/* What fi_getinfo tells. */
#include "ofi.h"

GROUP(info) {}
