/* Shared memory's own 32-bit address of what a pointer names: what PTX takes. */
#ifndef SMK_SHARED_ADDRESS_CUH
#define SMK_SHARED_ADDRESS_CUH

__device__ __forceinline__ unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

#endif
