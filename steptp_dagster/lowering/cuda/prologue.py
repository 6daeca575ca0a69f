"""What stands before the kernels of every CUDA text: types and device functions, no headers.

TVM's own prologue includes the C++ standard library and takes half a second to compile; this one
takes none. ``half`` is a storage type only: arithmetic on it runs in ``float``, as LEIR says. The
functions give the operations that ``lowering.machine`` names their LEIR meaning.
"""

from typing import Final

_INTEGERS: Final = {
    "int8": ("signed char", -(2**7), 2**7 - 1),
    "uint8": ("unsigned char", 0, 2**8 - 1),
    "int16": ("short", -(2**15), 2**15 - 1),
    "int32": ("int", -(2**31), 2**31 - 1),
}


def _truncations() -> str:
    lines = []
    for name, (ctype, low, high) in _INTEGERS.items():
        lowest = f"({low} - 1.0)" if low else "-1.0"
        body = f"!(x > {lowest}) ? (x == x ? {low} : 0) : x >= {high}.0 ? {high} : ({ctype})x"
        lines.append(f"LEIR_FN {ctype} leir_to_{name}(double x) {{ return {body}; }}")
    return "\n".join(lines)


PROLOGUE: Final = f"""\
#ifndef LEIR_FN
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef long long int64_t; typedef unsigned long long uint64_t;
#define LEIR_FN static __device__ __forceinline__
#define CUDART_INF_F __int_as_float(0x7f800000)
#define CUDART_INF __longlong_as_double(0x7ff0000000000000LL)
#define CUDART_NAN_F __int_as_float(0x7fffffff)
#define CUDART_NAN __longlong_as_double(0x7fffffffffffffffLL)
struct __align__(2) half {{
  unsigned short bits;
  __device__ half() {{}}
  __device__ explicit half(float x) {{ asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }}
  __device__ explicit half(double x) {{ asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x)); }}
  template <typename T> __device__ explicit half(T x) : half((double)x) {{}}
  __device__ explicit operator float() const {{
    float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)); return x;
  }}
}};
#endif
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint;
LEIR_FN float leir_abs(float x) {{ return fabsf(x); }}
LEIR_FN double leir_abs(double x) {{ return fabs(x); }}
LEIR_FN int64_t leir_abs(int64_t x) {{ return x < 0 ? (int64_t)(0ull - (uint64_t)x) : x; }}
LEIR_FN int32_t leir_abs(int32_t x) {{ return x < 0 ? (int32_t)(0u - (uint32_t)x) : x; }}
LEIR_FN int16_t leir_abs(int16_t x) {{ return (int16_t)(x < 0 ? -(int32_t)x : x); }}
LEIR_FN int8_t leir_abs(int8_t x) {{ return (int8_t)(x < 0 ? -(int32_t)x : x); }}
LEIR_FN float leir_sqrt(float x) {{ return sqrtf(x); }}
LEIR_FN double leir_sqrt(double x) {{ return sqrt(x); }}
LEIR_FN float leir_floor(float x) {{ return floorf(x); }}
LEIR_FN double leir_floor(double x) {{ return floor(x); }}
LEIR_FN float leir_ceil(float x) {{ return ceilf(x); }}
LEIR_FN double leir_ceil(double x) {{ return ceil(x); }}
LEIR_FN float leir_round(float x) {{ return rintf(x); }}
LEIR_FN double leir_round(double x) {{ return rint(x); }}
template <typename T> LEIR_FN T leir_max(T a, T b) {{
  return a != a ? a : b != b ? b : a > b ? a : b;
}}
template <typename T> LEIR_FN T leir_min(T a, T b) {{
  return a != a ? a : b != b ? b : a < b ? a : b;
}}
LEIR_FN int64_t leir_add(int64_t a, int64_t b) {{ return (int64_t)((uint64_t)a + (uint64_t)b); }}
LEIR_FN int64_t leir_sub(int64_t a, int64_t b) {{ return (int64_t)((uint64_t)a - (uint64_t)b); }}
LEIR_FN int64_t leir_mul(int64_t a, int64_t b) {{ return (int64_t)((uint64_t)a * (uint64_t)b); }}
{_truncations()}
LEIR_FN int64_t leir_to_int64(double x) {{
  return x != x ? 0 : x <= -9223372036854775808.0 ? (int64_t)(1ull << 63)
    : x >= 9223372036854775808.0 ? (int64_t)~(1ull << 63) : (int64_t)x;
}}
"""
