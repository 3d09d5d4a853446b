#include <cstdlib>
#include <spin.h>

static uint32_t seed = std::rand();

__handler int uses_seed(const ptl_payload_t p, void *state) { return seed ? SUCCESS : FAIL; }

int main() { return uses_seed == nullptr; }
