"""Headers that NVRTC does not have: of the C and C++ library, as far as device code uses them.

There are integers and limits, mathematics, min and max, and what libcu++ (cuda/std/...) has of the
rest. All else, such as std::vector or fopen, is of the host and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .includes import STANDARD

# Host functions are compiled as device functions, so that a launch in one of them instantiates its
# kernel. cuda_device_runtime_api.h declares what launches from device code need.
FOLDER = "smemkern/"
OPTIONS = ("-default-device", "-device-int128")
PRELUDE = """\
#undef __host__
#define __host__
#include <cuda_device_runtime_api.h>
#include "smemkern/.standard.h"
#include "smemkern/.host.h"
"""

# What takes the place of a header that is nowhere: libraries commonly bring these with them.
MISSING = """\
#pragma once
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuComplex.h>
#include <library_types.h>
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;
"""

# PyTorch's headers cannot be compiled for a device alone. Of its types, device code uses these.
_TORCH = """\
#include <cuda_fp16.h>
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
_OF_TORCH = re.compile(r"\b(c10|torch)\s*::|\bnamespace\s+(c10|at|torch)\b|[<\"](c10|ATen|torch)/")

_MATH_CONSTANTS = {
    "M_E": "2.7182818284590452354",
    "M_LOG2E": "1.4426950408889634074",
    "M_LOG10E": "0.43429448190325182765",
    "M_LN2": "0.69314718055994530942",
    "M_LN10": "2.30258509299404568402",
    "M_PI": "3.14159265358979323846",
    "M_PI_2": "1.57079632679489661923",
    "M_PI_4": "0.78539816339744830962",
    "M_1_PI": "0.31830988618379067154",
    "M_2_PI": "0.63661977236758134308",
    "M_2_SQRTPI": "1.12837916709551257390",
    "M_SQRT2": "1.41421356237309504880",
    "M_SQRT1_2": "0.70710678118654752440",
}
_FLOATS = {
    "FLT_RADIX": "2",
    "FLT_DIG": "6",
    "FLT_MANT_DIG": "24",
    "FLT_MIN_EXP": "(-125)",
    "FLT_MAX_EXP": "128",
    "FLT_MIN_10_EXP": "(-37)",
    "FLT_MAX_10_EXP": "38",
    "FLT_MAX": "3.402823466e+38F",
    "FLT_MIN": "1.175494351e-38F",
    "FLT_EPSILON": "1.192092896e-07F",
    "FLT_TRUE_MIN": "1.401298464e-45F",
    "DBL_DIG": "15",
    "DBL_MANT_DIG": "53",
    "DBL_MIN_EXP": "(-1021)",
    "DBL_MAX_EXP": "1024",
    "DBL_MIN_10_EXP": "(-307)",
    "DBL_MAX_10_EXP": "308",
    "DBL_MAX": "1.7976931348623157e+308",
    "DBL_MIN": "2.2250738585072014e-308",
    "DBL_EPSILON": "2.2204460492503131e-16",
    "DBL_TRUE_MIN": "4.9406564584124654e-324",
}
_MATH = """abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2
expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb isfinite isinf isnan ldexp lgamma llrint
llround log log10 log1p log2 logb lrint lround modf nearbyint nextafter pow remainder remquo rint
round scalbn signbit sin sinh sqrt tan tanh tgamma trunc"""
_INTEGERS = [
    *(f"{sign}int{least}{bits}_t" for sign in ("", "u") for least in ("", "_least", "_fast")
      for bits in (8, 16, 32, 64)),
    *("intptr_t", "uintptr_t", "intmax_t", "uintmax_t", "size_t", "ptrdiff_t"),
]  # fmt: skip


def _using(names: str | list[str], of: str = "") -> str:
    words = names.split() if isinstance(names, str) else names
    return "".join(f"using {of}::{name};\n" for name in words)


def _defined(macros: Mapping[str, str]) -> str:
    return "".join(
        f"#ifndef {name}\n#define {name} {value}\n#endif\n" for name, value in macros.items()
    )


# What nvcc takes in device code where its host compiler is GCC.
_GNU = """\
#define __asm asm
#define __asm__ asm
#define __const const
#define __signed__ signed
#define register
#define __typeof__(...) typename smemkern_plain<decltype(__VA_ARGS__)>::type
#define typeof __typeof__
#define __builtin_clz __clz
#define __builtin_clzll __clzll
#define __builtin_ffs __ffs
#define __builtin_ffsll __ffsll
#define __builtin_popcount __popc
#define __builtin_popcountll __popcll
template <class T> struct smemkern_plain { typedef T type; };
template <class T> struct smemkern_plain<T &> { typedef T type; };
template <class T> struct smemkern_plain<T &&> { typedef T type; };
typedef uint8_t u_int8_t;
typedef uint16_t u_int16_t;
typedef uint32_t u_int32_t;
typedef uint64_t u_int64_t;
"""

_STANDARD = f"""
#ifndef SMEMKERN_STANDARD
#define SMEMKERN_STANDARD
#define __extension__
#include <cuda/std/cfloat>
#include <cuda/std/climits>
#include <cuda/std/cstdint>
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef decltype(nullptr) nullptr_t;
#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fffffff))
#define HUGE_VALF INFINITY
#define HUGE_VAL (__longlong_as_double(0x7ff0000000000000))
{_defined(_MATH_CONSTANTS)}{_defined(_FLOATS)}namespace std {{
{_using(_INTEGERS)}using ::nullptr_t;
{_using(_MATH)}
template <class T> constexpr const T &min(const T &a, const T &b) {{ return b < a ? b : a; }}
template <class T> constexpr const T &max(const T &a, const T &b) {{ return a < b ? b : a; }}
template <class T> constexpr const T &clamp(const T &x, const T &low, const T &high) {{
    return x < low ? low : high < x ? high : x;
}}
}}
{_GNU}#endif
"""

# Header to names that it takes from the header of libcu++ with the same name.
_OF_C = frozenset(name for name in STANDARD if name.endswith(".h"))
_LIBCUXX = {
    "array": "array",
    "atomic": "atomic memory_order memory_order_relaxed memory_order_acquire memory_order_release "
    "memory_order_acq_rel memory_order_seq_cst",
    "bit": "bit_cast countl_zero countr_zero popcount",
    "complex": "complex",
    "functional": "plus minus multiplies divides modulus negate equal_to not_equal_to greater less "
    "greater_equal less_equal logical_and logical_or bit_and bit_or bit_xor",
    "initializer_list": "",
    "iterator": "iterator_traits",
    "limits": "numeric_limits",
    "optional": "optional nullopt",
    "span": "span",
    "tuple": "tuple make_tuple tie get tuple_cat",
    "type_traits": "true_type false_type integral_constant bool_constant conditional conditional_t "
    "enable_if enable_if_t void_t decay decay_t common_type common_type_t "
    "remove_reference remove_reference_t remove_cv remove_cv_t remove_const "
    "remove_const_t remove_pointer remove_pointer_t add_pointer_t make_signed "
    "make_signed_t make_unsigned make_unsigned_t underlying_type underlying_type_t "
    "is_same is_same_v is_integral is_integral_v is_floating_point "
    "is_floating_point_v is_arithmetic is_arithmetic_v is_signed is_signed_v "
    "is_unsigned is_unsigned_v is_pointer is_pointer_v is_const is_const_v is_enum "
    "is_enum_v is_class is_class_v is_void is_void_v is_convertible is_convertible_v "
    "is_base_of is_base_of_v is_trivially_copyable is_trivially_copyable_v "
    "is_default_constructible is_default_constructible_v is_reference is_reference_v "
    "is_array is_array_v is_empty is_empty_v invoke_result invoke_result_t "
    "aligned_storage aligned_storage_t alignment_of is_invocable is_invocable_v "
    "conjunction disjunction negation conjunction_v disjunction_v negation_v",
    "utility": "pair make_pair declval forward move swap exchange integer_sequence index_sequence "
    "make_integer_sequence make_index_sequence",
}  # fmt: skip


def _header(name: str, used: set[str]) -> str:
    """A header of the C or C++ library; `used`: the words of the user's files."""
    text = '#pragma once\n#include "smemkern/.standard.h"\n'
    # Common standard libraries bring some headers with others. libcu++ takes long to compile, so
    # that what no file names is left out.
    for other in dict.fromkeys((name, "utility", "type_traits", "limits")):
        wanted = other == name or name not in _OF_C
        if wanted and used & set(_LIBCUXX.get(other, "").split()):
            names = _using(_LIBCUXX[other], "cuda::std")
            guard = f"SMEMKERN_{other.upper()}"
            text += f"#ifndef {guard}\n#define {guard}\n#include <cuda/std/{other}>\n"
            text += f"namespace std {{\n{names}}}\n#endif\n"
    return text


# Each #include of <assert.h> defines assert() anew, by NDEBUG.
_ASSERT = """\
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) \\
    ((condition) ? (void)0 : __assertfail(#condition, __FILE__, __LINE__, __func__, sizeof(char)))
#endif
"""


def _cub(roots: Iterable[Path]) -> str:
    """<cub/cub.cuh> without the algorithms that the host launches."""
    for root in roots:
        if (root / "cub" / "block").is_dir():
            parts = sorted(
                path.relative_to(root)
                for folder in ("block", "warp", "thread")
                for path in (root / "cub" / folder).glob(f"{folder}_*.cuh")
            )
            return "#pragma once\n" + "".join(f"#include <{part}>\n" for part in parts)
    return MISSING


def for_the_host(name: str) -> bool:
    """Whether a header of CUDA's C++ libraries is of algorithms that the host launches."""
    return name.startswith(("cub/device/", "thrust/"))


def headers(texts: Sequence[str], roots: Sequence[Path]) -> dict[str, str]:
    """The headers in memory for these texts of a user; `roots`: folders of CUDA's headers."""
    used = set(re.findall(r"\b[a-z]\w+", "\n".join(texts)))
    made = {name: _header(name, used) for name in sorted(STANDARD)}
    made["assert.h"] = made["cassert"] = _ASSERT
    made["cub/cub.cuh"] = _cub(roots)
    made[".standard.h"] = _STANDARD
    made[".host.h"] = _host_header(used, roots) + torch(texts)
    # libcu++ asks for <version> and others by __has_include, so that they need names of their own.
    return {FOLDER + name: text for name, text in made.items()}


def torch(texts: Iterable[str]) -> str:
    """PyTorch's types, for texts that use them and bring no headers of PyTorch."""
    if any(re.search(r"\bnamespace\s+c10\b", text) for text in texts):
        return ""
    given = list(texts)
    types = _TORCH if any(map(_OF_TORCH.search, given)) else ""
    accessors = _ACCESSORS if any("PackedTensorAccessor" in text for text in given) else ""
    return types + accessors


# Functions of the host that programs call around their launches, by what they return. They do
# nothing, and are here so that the launches compile.
_HOST = {
    "int": """abs atexit atoi fclose feof fflush fgetc fprintf fputc fputs fscanf fseek getchar
gettimeofday putchar puts rand remove scanf sprintf snprintf sscanf strcasecmp strcmp strncmp system
usleep vfprintf vsnprintf""",
    "long": "atol ftell lround strtol time",
    "unsigned long": "fread fwrite strlen strtoul",
    "double": "atof difftime drand48 strtod",
    "void": "abort exit perror qsort srand srand48",
    "char *": "fgets getenv strcat strchr strcpy strdup strerror strncpy strrchr strstr strtok",
    "void *": "aligned_alloc calloc memmove realloc",
    "FILE *": "fopen popen tmpfile",
}
_HOST_TEMPLATE = "template <class... T> {type} {name}(T &&...) {{ return ({type})0; }}\n"


def _host_header(used: set[str], roots: Iterable[Path]) -> str:
    """Declares the functions of the host's libraries among the used words."""
    runtime, device = set(), set()
    for root in roots:
        api, own = root / "cuda_runtime_api.h", root / "cuda_device_runtime_api.h"
        if api.is_file() and own.is_file():
            runtime = set(re.findall(r"CUDARTAPI (cuda\w+)\(", api.read_text(errors="replace")))
            device = set(re.findall(r"\b(cuda\w+)\(", own.read_text(errors="replace")))
            break
    runtime |= {"cudaMallocHost", "cudaHostAlloc", "cudaMallocManaged", "cudaFuncSetAttribute"}
    runtime |= {"cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaLaunchKernelEx"}
    lines = [_HOST_START]
    for kind, names in _HOST.items():
        for name in sorted(used & set(names.split())):
            lines.append(_HOST_TEMPLATE.format(type=kind, name=name))
    for name in sorted(used & (runtime - device)):
        lines.append(_HOST_TEMPLATE.format(type="cudaError_t", name=name))
    return "".join(lines)


_HOST_START = """\
struct FILE;
struct timeval { long tv_sec, tv_usec; };
struct timespec { long tv_sec, tv_nsec; };
typedef long long time_t;
typedef long ssize_t;
#define stdin ((FILE *)0)
#define stdout ((FILE *)0)
#define stderr ((FILE *)0)
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
template <class T> cudaError_t cudaMalloc(T **, size_t) { return cudaSuccess; }
template <class T> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, T *) {
    return cudaSuccess;
}
template <class T>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *, T, int, size_t) {
    return cudaSuccess;
}
template <class T>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *, T, int, size_t,
                                                                   unsigned) {
    return cudaSuccess;
}
"""
