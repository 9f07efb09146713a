/* The GPU that the emulator models. */
#ifndef EMU_DEVICE_H
#define EMU_DEVICE_H

/* SMs of an H200. A block's %smid is its linear block index modulo this. */
enum { EMU_MULTIPROCESSORS = 132 };

#endif
