/* How a kernel reads PyTorch's state of a Philox generator. */
#ifndef SUITE_ATEN_UNPACK_RAW_H
#define SUITE_ATEN_UNPACK_RAW_H

#include <ATen/cuda/PhiloxCudaState.h>

#include <tuple>

namespace at::cuda::philox {
__host__ __device__ inline std::tuple<std::uint64_t, std::uint64_t> unpack(const PhiloxCudaState &s) {
    if (s.captured_)
        return {static_cast<std::uint64_t>(*s.seed_.ptr),
                static_cast<std::uint64_t>(*s.offset_.ptr + s.offset_intragraph_)};
    return {s.seed_.val, s.offset_.val};
}
} // namespace at::cuda::philox

#endif
