/* The 32-bit shared-memory address that PTX takes, of a generic pointer. */
#ifndef SMK_SHARED_ADDRESS_CUH
#define SMK_SHARED_ADDRESS_CUH

__device__ __forceinline__ unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

#endif
