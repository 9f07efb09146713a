/* PyTorch's state of a Philox generator: a seed and an offset, or pointers to them. */
#ifndef SUITE_ATEN_PHILOX_STATE_H
#define SUITE_ATEN_PHILOX_STATE_H

#include <cstdint>

namespace at {
struct PhiloxCudaState {
    union Payload {
        std::uint64_t val;
        std::int64_t *ptr;
    };
    Payload seed_, offset_;
    std::uint32_t offset_intragraph_ = 0;
    bool captured_ = false;
};
} // namespace at

#endif
