/* Device-wide algorithms of CUB, instantiated: what their kernels compile to is decoded. */
#include <cstdint>
#include <cub/cub.cuh>

template <typename T>
void algorithms(void *temporary, size_t &bytes, const T *in, T *out, int *count, int n) {
    cub::DeviceReduce::Sum(temporary, bytes, in, out, n);
    cub::DeviceReduce::Max(temporary, bytes, in, out, n);
    cub::DeviceScan::ExclusiveSum(temporary, bytes, in, out, n);
    cub::DeviceScan::InclusiveSum(temporary, bytes, in, out, n);
    cub::DeviceRadixSort::SortKeys(temporary, bytes, in, out, n);
    cub::DeviceRadixSort::SortPairs(temporary, bytes, in, out, in, out, n);
    cub::DeviceRunLengthEncode::Encode(temporary, bytes, in, out, count, count, n);
    cub::DeviceSelect::Unique(temporary, bytes, in, out, count, n);
    cub::DeviceHistogram::HistogramEven(temporary, bytes, in, count, 65, T(0), T(64), n);
    cub::DeviceMergeSort::SortKeys(temporary, bytes, out, n, [] __device__(T a, T b) { return a < b; });
}

template void algorithms(void *, size_t &, const int *, int *, int *, int);
template void algorithms(void *, size_t &, const float *, float *, int *, int);
template void algorithms(void *, size_t &, const double *, double *, int *, int);
