#include <spin.h>

struct shared {
    uint32_t count;
    void *p;
};

typedef struct {
    uint64_t total;
    struct {
        long last;
    } inner;
} cast_only_t;

__handler int h(const ptl_header_t h, void *state) {
    struct shared *s = state;
    s->count++;
    ((cast_only_t *)state)->total++;
    return PROCEED;
}

int main(void) { return h == NULL; }
