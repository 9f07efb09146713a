"""The device code of CUDA C++ that also has host code, for a compiler of device code alone.

Host functions, and what only they need, are replaced by blanks. Lines keep their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# A token that can hide braces and semicolons, or one of them.
_TOKENS = re.compile(
    r"""(?P<skip>
          //[^\n]* | /\*.*?(?:\*/|\Z)
        | R"(?P<mark>[^()\s\\]{0,16})\(.*?(?:\)(?P=mark)"|\Z)
        | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])'
        )
      | (?P<line>^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*)
      | (?P<open>[{(\[]) | (?P<close>[})\]]) | (?P<end>;)""",
    re.S | re.M | re.X,
)
_DEVICE = re.compile(r"\b__(global|device|constant|managed)__\b|\bconstexpr\b")
_SCOPE = re.compile(r"\b(namespace\b[^;{}()=]*|extern\s*\"C(\+\+)?\"\s*)$")
_TYPE = re.compile(r"\b(struct|class|union|enum)\b[^()=;{}]*$")
_LIBRARY = re.compile(r"\b(torch|at|c10|pybind11|py)\s*::|\bnamespace\s+(torch|at|c10|pybind11)\b")
_CUDA_HEADER = re.compile(
    r"#\s*include\s*<\s*(cuda|cub/|thrust/|nv/|cooperative_groups|mma\.h|math_constants|device_|"
    r"vector_|texture_|surface_|curand|sm_|cutlass/|cute/|cccl/)"
)
_HEAD = 1000  # characters before a brace that say what it opens
_SHORT_FLOATS = re.compile(r"\b(c10|at|torch)\s*::\s*(Half|BFloat16)\b")
_FOREIGN = re.compile(r"<<<|#\s*include\s*<(torch|ATen|c10|pybind11)/|\bPYBIND11_MODULE\b")

# What host headers declare for kernels, too: NVRTC has none of them.
_NAMES = """#include <cuda/std/cstdint>
#include <cuda/std/limits>
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif
#ifndef FLT_MAX
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define DBL_MAX 1.7976931348623158e+308
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define M_PI 3.14159265358979323846
#endif
namespace std {
using cuda::std::numeric_limits;
using ::max; using ::min; using ::abs; using ::fabs; using ::floor; using ::ceil; using ::round;
using ::exp; using ::log; using ::pow; using ::sqrt; using ::sin; using ::cos; using ::tanh;
}
namespace c10 {}
namespace at {}
namespace torch {}
"""
_TYPES = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
namespace c10 { using Half = __half; using BFloat16 = __nv_bfloat16; }
namespace at { using c10::Half; using c10::BFloat16; }
namespace torch { using c10::Half; using c10::BFloat16; }
"""
# PyTorch's views of tensors that kernels take by value: a pointer, then sizes, then strides.
_ACCESSORS = """namespace at {
template <typename T> struct DefaultPtrTraits { typedef T *PtrType; };
template <typename T> struct RestrictPtrTraits { typedef T *__restrict__ PtrType; };
template <typename T, size_t N, template <typename> class P, typename I> struct TensorAccessor {
    typename P<T>::PtrType data_; const I *sizes_, *strides_;
    __host__ __device__ I size(I i) const { return sizes_[i]; }
    __host__ __device__ I stride(I i) const { return strides_[i]; }
    __host__ __device__ typename P<T>::PtrType data() const { return data_; }
    __host__ __device__ TensorAccessor<T, N - 1, P, I> operator[](I i) const {
        return {data_ + strides_[0] * i, sizes_ + 1, strides_ + 1};
    }
};
template <typename T, template <typename> class P, typename I> struct TensorAccessor<T, 1, P, I> {
    typename P<T>::PtrType data_; const I *sizes_, *strides_;
    __host__ __device__ I size(I i) const { return sizes_[i]; }
    __host__ __device__ I stride(I i) const { return strides_[i]; }
    __host__ __device__ typename P<T>::PtrType data() const { return data_; }
    __host__ __device__ T &operator[](I i) const { return data_[strides_[0] * i]; }
};
template <typename T, size_t N, template <typename> class P, typename I>
struct GenericPackedTensorAccessor {
    typename P<T>::PtrType data_; I sizes_[N], strides_[N];
    __host__ __device__ I size(I i) const { return sizes_[i]; }
    __host__ __device__ I stride(I i) const { return strides_[i]; }
    __host__ __device__ typename P<T>::PtrType data() const { return data_; }
    __host__ __device__ decltype(auto) operator[](I i) const {
        return TensorAccessor<T, N, P, I>{data_, sizes_, strides_}[i];
    }
};
template <typename T, size_t N, template <typename> class P = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, P, int>;
template <typename T, size_t N, template <typename> class P = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, P, long>;
template <typename T, size_t N, template <typename> class P = DefaultPtrTraits, typename I = long>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, P, I>;
}
namespace torch {
using at::DefaultPtrTraits; using at::RestrictPtrTraits; using at::GenericPackedTensorAccessor;
using at::PackedTensorAccessor; using at::PackedTensorAccessor32; using at::PackedTensorAccessor64;
}
"""


def has_host_code(text: str) -> bool:
    """Whether a text launches kernels, or is part of an extension of PyTorch."""
    return bool(_FOREIGN.search(text)) or "PackedTensorAccessor" in text


def device_code(text: str, name: str = "") -> str:
    """The text without its host functions, and without headers that are not CUDA's.

    Names that kernels often have from other headers are declared, as INFINITY and std::max. If the
    text or the kernel's name has PyTorch's 16-bit types, they are CUDA's. Accessors of tensors are
    declared if the text has them.
    """
    out = list(text)
    for begin, end in _host_parts(text):
        out[begin:end] = re.sub(r"[^\n]", " ", text[begin:end])
    kept = "".join(out)
    types = _TYPES if _SHORT_FLOATS.search(f"{name}\n{kept}") else ""
    accessors = _ACCESSORS if "PackedTensorAccessor" in kept else ""
    return f"{_NAMES}{types}{accessors}#line 1\n{kept}"


def _host_parts(text: str) -> Iterator[tuple[int, int]]:
    """The places of the declarations and headers to leave out."""
    begin, depth, body, scopes = 0, 0, None, 0
    for token in _TOKENS.finditer(text):
        if token["line"] is not None:
            if depth == 0 and re.match(r"[ \t]*#\s*include", token[0]):
                if not _CUDA_HEADER.match(token[0].lstrip()):
                    yield token.span()
                begin = token.end()
        elif token["open"]:
            if depth == 0 and token[0] == "{":
                if _SCOPE.search(_bare(text[begin : token.start()]).rstrip()[-_HEAD:]):
                    begin, scopes = token.end(), scopes + 1
                    continue
                body = token.start()
            depth += 1
        elif token["close"]:
            if depth == 0:  # of a namespace
                begin, scopes = token.end(), max(scopes - 1, 0)
                continue
            depth -= 1
            if depth == 0 and token[0] == "}" and body is not None:
                head = _bare(text[begin:body])
                if not _TYPE.search(head.rstrip()[-_HEAD:]) and "=" not in head.partition("(")[0]:
                    if not _DEVICE.search(head):
                        yield begin, token.end()
                    begin, body = token.end(), None
        elif token["end"] and depth == 0:
            whole = text[begin : token.end()]
            if _LIBRARY.search(_bare(whole)) and not _DEVICE.search(_bare(whole)):
                yield begin, token.end()
            begin, body = token.end(), None


def _bare(text: str) -> str:
    """Without comments and preprocessor lines."""
    text = re.sub(r"//[^\n]*|/\*.*?(?:\*/|\Z)", " ", text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", " ", text, flags=re.M)
