/* As much of PyTorch's C++ interface as the bindings of kernels name, so that the file that has both
 * compiles without PyTorch. Nothing here runs: only the device code is compiled. */
#ifndef SUITE_TORCH_EXTENSION_H
#define SUITE_TORCH_EXTENSION_H

#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace torch {
enum Dtype { kFloat8_e4m3fn, kFloat8_e5m2, kFloat32, kHalf, kFloat16, kBFloat16, kInt32, kInt64, kInt8, kFloat, kInt, kLong };
enum DeviceType { kCPU, kCUDA };

struct Device {
    DeviceType type() const { return kCUDA; }
    int index() const { return 0; }
};

struct TensorOptions {
    TensorOptions dtype(Dtype) const { return *this; }
    TensorOptions device(DeviceType, int = 0) const { return *this; }
    TensorOptions device(Device) const { return *this; }
    Dtype dtype() const { return kFloat; }
    operator Dtype() const { return kFloat; }
    bool operator==(Dtype) const { return true; }
    bool operator!=(Dtype) const { return false; }
};
inline std::ostream &operator<<(std::ostream &out, const TensorOptions &) { return out; }

struct Scalar {
    template <typename T> T to() const { return T(); }
};

struct Tensor {
    std::int64_t size(int) const { return 1; }
    std::vector<std::int64_t> sizes() const { return {}; }
    int dim() const { return 1; }
    std::int64_t numel() const { return 1; }
    std::int64_t stride(int) const { return 1; }
    TensorOptions options() const { return {}; }
    Dtype dtype() const { return kFloat; }
    Dtype scalar_type() const { return kFloat; }
    Device device() const { return {}; }
    bool is_contiguous() const { return true; }
    bool is_cuda() const { return true; }
    bool defined() const { return true; }
    int get_device() const { return 0; }
    Tensor to(DeviceType) const { return *this; }
    Tensor contiguous() const { return *this; }
    void *data_ptr() const { return nullptr; }
    template <typename T> T *data_ptr() const { return nullptr; }
    Tensor cpu() const { return *this; }
    Scalar item() const { return {}; }
    template <typename T> T item() const { return T(); }
};

template <typename... T> Tensor zeros(T...) { return {}; }
inline Tensor zeros(std::initializer_list<std::int64_t>, TensorOptions = {}) { return {}; }
inline Tensor empty(std::initializer_list<std::int64_t>, TensorOptions = {}) { return {}; }
template <typename T> Tensor tensor(std::initializer_list<T>, TensorOptions = {}) { return {}; }
inline std::tuple<Tensor, Tensor> max(Tensor, int) { return {}; }
inline TensorOptions dtype(Dtype) { return {}; }
} // namespace torch

namespace suite {
struct Module {
    template <typename F> void def(const char *, F, const char *) {}
};
} // namespace suite

#define TORCH_CHECK(...) (void)0
#define PYBIND11_MODULE(name, m) void suite_bindings(suite::Module &m)

#endif
