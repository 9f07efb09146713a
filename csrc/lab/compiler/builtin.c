#include "builtin.h"

#include <string.h>

#define EACH(M) M("i", "s32") M("u", "u32") M("l", "s64") M("L", "u64") M("f", "f32") M("d", "f64")

#define MIN_ROW(t, p)     {"min", LAB_PLAIN, t, t t, "min." p},
#define MAX_ROW(t, p)     {"max", LAB_PLAIN, t, t t, "max." p},
#define SHUFFLE(t, p)     {"__shfl_sync", LAB_SHUFFLE, t, "u" t "i?i", "idx"},
#define SHUFFLE_UP(t, p)  {"__shfl_up_sync", LAB_SHUFFLE, t, "u" t "u?i", "up"},
#define SHUFFLE_DN(t, p)  {"__shfl_down_sync", LAB_SHUFFLE, t, "u" t "u?i", "down"},
#define SHUFFLE_XOR(t, p) {"__shfl_xor_sync", LAB_SHUFFLE, t, "u" t "i?i", "bfly"},
#define LOAD(t, p)        {"__ldg", LAB_LOAD, t, "*" t, ""},

static const lab_builtin rows[] = {
    {"__syncthreads", LAB_NO_RESULT, "v", "", "bar.sync 0"},
    {"__threadfence", LAB_NO_RESULT, "v", "", "membar.gl"},
    {"__threadfence_block", LAB_NO_RESULT, "v", "", "membar.cta"},
    {"__threadfence_system", LAB_NO_RESULT, "v", "", "membar.sys"},
    {"__syncwarp", LAB_WARP_SYNC, "v", "?u", ""},
    {"__activemask", LAB_ACTIVE, "u", "", "activemask.b32"},
    {"__ballot_sync", LAB_VOTE, "u", "up", "ballot.b32"},
    {"__any_sync", LAB_VOTE, "p", "up", "any.pred"},
    {"__all_sync", LAB_VOTE, "p", "up", "all.pred"},
    EACH(SHUFFLE) EACH(SHUFFLE_UP) EACH(SHUFFLE_DN) EACH(SHUFFLE_XOR) EACH(MIN_ROW) EACH(MAX_ROW)
        EACH(LOAD){"fminf", LAB_PLAIN, "f", "ff", "min.f32"},
    {"fmaxf", LAB_PLAIN, "f", "ff", "max.f32"},
    {"fmin", LAB_PLAIN, "f", "ff", "min.f32"},
    {"fmin", LAB_PLAIN, "d", "dd", "min.f64"},
    {"fmax", LAB_PLAIN, "f", "ff", "max.f32"},
    {"fmax", LAB_PLAIN, "d", "dd", "max.f64"},
    {"abs", LAB_PLAIN, "i", "i", "abs.s32"},
    {"abs", LAB_PLAIN, "l", "l", "abs.s64"},
    {"abs", LAB_PLAIN, "f", "f", "abs.f32"},
    {"abs", LAB_PLAIN, "d", "d", "abs.f64"},
    {"fabsf", LAB_PLAIN, "f", "f", "abs.f32"},
    {"fabs", LAB_PLAIN, "f", "f", "abs.f32"},
    {"fabs", LAB_PLAIN, "d", "d", "abs.f64"},
    {"sqrtf", LAB_PLAIN, "f", "f", "sqrt.rn.f32"},
    {"sqrt", LAB_PLAIN, "f", "f", "sqrt.rn.f32"},
    {"sqrt", LAB_PLAIN, "d", "d", "sqrt.rn.f64"},
    {"rsqrtf", LAB_PLAIN, "f", "f", "rsqrt.approx.f32"},
    {"fmaf", LAB_PLAIN, "f", "fff", "fma.rn.f32"},
    {"fma", LAB_PLAIN, "f", "fff", "fma.rn.f32"},
    {"fma", LAB_PLAIN, "d", "ddd", "fma.rn.f64"},
    {"floorf", LAB_PLAIN, "f", "f", "cvt.rmi.f32.f32"},
    {"ceilf", LAB_PLAIN, "f", "f", "cvt.rpi.f32.f32"},
    {"truncf", LAB_PLAIN, "f", "f", "cvt.rzi.f32.f32"},
    {"rintf", LAB_PLAIN, "f", "f", "cvt.rni.f32.f32"},
    {"floor", LAB_PLAIN, "f", "f", "cvt.rmi.f32.f32"},
    {"floor", LAB_PLAIN, "d", "d", "cvt.rmi.f64.f64"},
    {"ceil", LAB_PLAIN, "f", "f", "cvt.rpi.f32.f32"},
    {"ceil", LAB_PLAIN, "d", "d", "cvt.rpi.f64.f64"},
    {"__fadd_rn", LAB_PLAIN, "f", "ff", "add.rn.f32"},
    {"__fsub_rn", LAB_PLAIN, "f", "ff", "sub.rn.f32"},
    {"__fmul_rn", LAB_PLAIN, "f", "ff", "mul.rn.f32"},
    {"__fdiv_rn", LAB_PLAIN, "f", "ff", "div.rn.f32"},
    {"__fmaf_rn", LAB_PLAIN, "f", "fff", "fma.rn.f32"},
    {"__fsqrt_rn", LAB_PLAIN, "f", "f", "sqrt.rn.f32"},
    {"__popc", LAB_PLAIN, "i", "u", "popc.b32"},
    {"__clz", LAB_PLAIN, "i", "i", "clz.b32"},
    {"__brev", LAB_PLAIN, "u", "u", "brev.b32"},
    {"__ffs", LAB_FIND_FIRST, "i", "i", ""},
    {"__mulhi", LAB_PLAIN, "i", "ii", "mul.hi.s32"},
    {"__umulhi", LAB_PLAIN, "u", "uu", "mul.hi.u32"},
    {"__reduce_add_sync", LAB_EFFECT, "i", "ui", "redux.sync.add.s32"},
    {"__reduce_add_sync", LAB_EFFECT, "u", "uu", "redux.sync.add.u32"},
    {"__reduce_min_sync", LAB_EFFECT, "i", "ui", "redux.sync.min.s32"},
    {"__reduce_min_sync", LAB_EFFECT, "u", "uu", "redux.sync.min.u32"},
    {"__reduce_max_sync", LAB_EFFECT, "i", "ui", "redux.sync.max.s32"},
    {"__reduce_max_sync", LAB_EFFECT, "u", "uu", "redux.sync.max.u32"},
    {"__int_as_float", LAB_BITS, "f", "i", ""},
    {"__uint_as_float", LAB_BITS, "f", "u", ""},
    {"__float_as_int", LAB_BITS, "i", "f", ""},
    {"__float_as_uint", LAB_BITS, "u", "f", ""},
    {"atomicAdd", LAB_ATOMIC, "i", "*ii", "add.u32"},
    {"atomicAdd", LAB_ATOMIC, "u", "*uu", "add.u32"},
    {"atomicAdd", LAB_ATOMIC, "L", "*LL", "add.u64"},
    {"atomicAdd", LAB_ATOMIC, "f", "*ff", "add.f32"},
    {"atomicAdd", LAB_ATOMIC, "d", "*dd", "add.f64"},
    {"atomicSub", LAB_ATOMIC_SUB, "i", "*ii", "add.u32"},
    {"atomicSub", LAB_ATOMIC_SUB, "u", "*uu", "add.u32"},
    {"atomicMax", LAB_ATOMIC, "i", "*ii", "max.s32"},
    {"atomicMax", LAB_ATOMIC, "u", "*uu", "max.u32"},
    {"atomicMax", LAB_ATOMIC, "l", "*ll", "max.s64"},
    {"atomicMax", LAB_ATOMIC, "L", "*LL", "max.u64"},
    {"atomicMin", LAB_ATOMIC, "i", "*ii", "min.s32"},
    {"atomicMin", LAB_ATOMIC, "u", "*uu", "min.u32"},
    {"atomicMin", LAB_ATOMIC, "l", "*ll", "min.s64"},
    {"atomicMin", LAB_ATOMIC, "L", "*LL", "min.u64"},
    {"atomicExch", LAB_ATOMIC, "i", "*ii", "exch.b32"},
    {"atomicExch", LAB_ATOMIC, "u", "*uu", "exch.b32"},
    {"atomicExch", LAB_ATOMIC, "L", "*LL", "exch.b64"},
    {"atomicExch", LAB_ATOMIC, "f", "*ff", "exch.b32"},
    {"atomicCAS", LAB_ATOMIC, "i", "*iii", "cas.b32"},
    {"atomicCAS", LAB_ATOMIC, "u", "*uuu", "cas.b32"},
    {"atomicCAS", LAB_ATOMIC, "L", "*LLL", "cas.b64"},
    {"atomicAnd", LAB_ATOMIC, "i", "*ii", "and.b32"},
    {"atomicAnd", LAB_ATOMIC, "u", "*uu", "and.b32"},
    {"atomicOr", LAB_ATOMIC, "i", "*ii", "or.b32"},
    {"atomicOr", LAB_ATOMIC, "u", "*uu", "or.b32"},
    {"atomicXor", LAB_ATOMIC, "i", "*ii", "xor.b32"},
    {"atomicXor", LAB_ATOMIC, "u", "*uu", "xor.b32"},
    {"atomicInc", LAB_ATOMIC, "u", "*uu", "inc.u32"},
    {"atomicDec", LAB_ATOMIC, "u", "*uu", "dec.u32"},
};

const lab_builtin *lab_builtins(const char *name, uint32_t *count) {
    const size_t n = sizeof rows / sizeof *rows;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        *count = 1;
        while (i + *count < n && strcmp(rows[i + *count].name, name) == 0)
            ++*count;
        return &rows[i];
    }
    return NULL;
}

const lab_type *lab_letter_type(char letter) {
    static const char letters[] = "vpiulLfd";
    static const lab_type_kind kinds[] = {LAB_VOID, LAB_BOOL, LAB_I32, LAB_U32,
                                          LAB_I64,  LAB_U64,  LAB_F32, LAB_F64};
    const char *at = strchr(letters, letter);
    return lab_scalar(kinds[at ? at - letters : 0]);
}
