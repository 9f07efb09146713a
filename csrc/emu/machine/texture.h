/* The textures and surfaces of a launch.
 *
 * A handle is a number: its region has no memory, so a kernel cannot read or write through it. Each
 * instruction looks its handle up here. A module's .texref or .surfref variable is known by its
 * address.
 */
#ifndef EMU_TEXTURE_H
#define EMU_TEXTURE_H

#include "../../core/job.h"
#include "launch.h"

typedef struct bound_texture {
    const smk_texture *form;
    unsigned char *texels; /* smk_texture_bytes of them, inside the launch's memory */
    uint64_t address;      /* the same as an address of the kernel */
    uint64_t variable;     /* its address; 0: none */
} bound_texture;

/* Sets l->textures, and writes handles into the kernel's parameters. textures_free is due, also
 * after a failure. */
smk_code textures_bind(launch *l, const smk_job *job, unsigned char *parameters,
                       smk_status *status);
void textures_free(launch *l);

/* The texture (or surface) with this handle. NULL: warp_fault has been called. */
const bound_texture *texture_find(warp *w, const insn *i, int lane, uint64_t handle, bool surface);

#endif
