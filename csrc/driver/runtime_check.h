/* The runtime's question whether this driver is complete. */
#ifndef DRIVER_RUNTIME_CHECK_H
#define DRIVER_RUNTIME_CHECK_H

#include <stdint.h>

#include "cuda_types.h"

/* A device as the question covers it. */
typedef struct runtime_check_device {
    CUuuid uuid;
    int32_t domain, bus, device; /* PCI */
} runtime_check_device;

void runtime_check_answer(uint32_t version, uint64_t seconds, uint32_t driver_version,
                          const void *cudart_table, const void *check_table, const void *function,
                          const runtime_check_device *device, uint64_t answer[2]);

#endif
