#include <iostream>
#include <spin.h>
#include <string>

namespace app {
struct info {
    uint64_t bytes;
    template <class T> T as() const { return T(bytes); }
};
} // namespace app

static const std::string greeting = "hello";

__handler int count(const ptl_payload_t p, void *state) {
    auto *info = static_cast<app::info *>(state);
    info->bytes += p.length;
    return info->as<int>() > 3 ? SUCCESS : DROP;
}

int main() {
    try {
        std::cout << greeting << std::endl;
    } catch (...) {
        return 1;
    }
    return count == nullptr;
}
