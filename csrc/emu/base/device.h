/* The GPU that the emulator stands for. */
#ifndef EMU_DEVICE_H
#define EMU_DEVICE_H

enum { EMU_MULTIPROCESSORS = 132 }; /* an H200's; a block's %smid is its number modulo this */

#endif
