/* Memory and events that several processes share (cuIpc...).
 *
 * Shared memory is a file without a name: at its start what its handles say of it, from DATA on the
 * bytes of an allocation. A handle has the process that made it, the file's descriptor there, and
 * random bytes. Another process opens the file as /proc/PROCESS/fd/DESCRIPTOR. So nothing is left
 * behind in whatever way a process ends, and memory lives as long as a process maps it.
 *
 * An allocation moves to such a file when its first handle is made. Its host address stays. From
 * then on all of it counts as written, as what other processes write is not known here.
 *
 * An event needs no file. Its records have run when their call returns (api_stream.c), so what a
 * process learns to be recorded is done, and there is nothing to wait for.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "work.h"

enum { DATA = 1 << 16, PAGE = 4096 }; /* DATA: a multiple of every page size */
static const char NAME[] = "smemkern-ipc";
static const char MAGIC[16] = "smemkern-ipc-1";

typedef enum shared_kind { SHARED_MEMORY = 1, SHARED_EVENT } shared_kind;

/* The content of a handle, and the start of the file. */
typedef struct identity {
    char magic[16];
    shared_kind kind;
    int process, file;
    int zero;
    uint64_t bytes; /* of the allocation */
    unsigned char random[16];
} identity;

_Static_assert(sizeof(identity) <= sizeof(CUipcMemHandle), "a handle has 64 bytes");

struct shared_memory {
    identity id;
    int file;            /* of the process that allocated it; -1: this one has opened it */
    unsigned references; /* how often it has been opened */
};

static bool identify(shared_kind kind, int file, size_t bytes, identity *out) {
    *out = (identity){.kind = kind, .process = getpid(), .file = file, .bytes = bytes};
    memcpy(out->magic, MAGIC, sizeof MAGIC);
    return getrandom(out->random, sizeof out->random, 0) == (ssize_t)sizeof out->random;
}

/* Whether a handle's bytes are of this form. */
static bool read_identity(const char *handle, shared_kind kind, identity *out) {
    memcpy(out, handle, sizeof *out);
    return !memcmp(out->magic, MAGIC, sizeof MAGIC) && out->kind == kind && out->process > 0 &&
           out->file >= -1 && !out->zero;
}

static void write_identity(char *handle, const identity *id) {
    memset(handle, 0, sizeof(CUipcMemHandle));
    memcpy(handle, id, sizeof *id);
}

/* ---- the file ---- */

static bool write_all(int file, const void *from, size_t bytes, size_t at) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = pwrite(file, (const char *)from + done, bytes - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

/* Pages of zeros stay holes, so memory that was never used takes none in the file. */
static bool write_pages(int file, const unsigned char *from, size_t bytes) {
    static const unsigned char zeros[PAGE];
    for (size_t at = 0; at < bytes; at += PAGE)
        if (memcmp(from + at, zeros, PAGE) && !write_all(file, from + at, PAGE, DATA + at))
            return false;
    return true;
}

static size_t whole_pages(size_t bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* Its size is sealed: else a process that cuts the file could crash another one. */
static int make_file(const allocation *a, identity *out) {
    const int file = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const size_t bytes = whole_pages(a->bytes);
    if (file < 0) return -1;
    if (identify(SHARED_MEMORY, file, a->bytes, out) && !ftruncate(file, (off_t)(DATA + bytes)) &&
        write_all(file, out, sizeof *out, 0) && write_pages(file, a->host, bytes) &&
        !fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return file;
    close(file);
    return -1;
}

/* Whether an open file is the one that a handle was made for. */
static bool is_file_of(int file, const identity *id) {
    const size_t limit = (size_t)(emu_buffer_address(1) - emu_buffer_address(0));
    identity found;
    struct stat s;
    const int seals = fcntl(file, F_GET_SEALS);
    return seals >= 0 && seals & F_SEAL_SHRINK &&
           pread(file, &found, sizeof found, 0) == (ssize_t)sizeof found &&
           !memcmp(&found, id, sizeof found) && id->bytes && id->bytes < limit &&
           !fstat(file, &s) && (uint64_t)s.st_size >= DATA + whole_pages(id->bytes);
}

/* The file of a handle, which may be any bytes. -1: there is none. */
static int open_file(const identity *id) {
    char path[64], target[64] = {0}, wanted[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", id->process, id->file);
    const int length = snprintf(wanted, sizeof wanted, "/memfd:%s", NAME);
    /* To open a pipe or a device could wait or have effects. */
    if (readlink(path, target, sizeof target - 1) < length ||
        memcmp(target, wanted, (size_t)length) != 0)
        return -1;
    const int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file >= 0 && is_file_of(file, id)) return file;
    if (file >= 0) close(file);
    return -1;
}

/* ---- memory ---- */

bool ipc_is_possible(const allocation *a) {
    return a->live && a->kind == MEMORY_DEVICE && a->mapped && !a->pooled && !a->reserved;
}

void ipc_forget(allocation *a) {
    if (a->shared && a->shared->file >= 0) close(a->shared->file);
    free(a->shared);
    a->shared = NULL;
}

/* Moves an allocation to a file. */
static CUresult share(allocation *a) {
    struct shared_memory *s = calloc(1, sizeof *s);
    if (!s) return CUDA_ERROR_OUT_OF_MEMORY;
    s->file = make_file(a, &s->id);
    if (s->file < 0) {
        free(s);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    void *at =
        mmap(a->host, a->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, s->file, DATA);
    if (at == MAP_FAILED) {
        close(s->file);
        free(s);
        return CUDA_ERROR_MAP_FAILED;
    }
    a->shared = s;
    memory_set_complete(a);
    return CUDA_SUCCESS;
}

/* As on a GPU, a handle is that of the whole allocation that an address is in. */
static CUresult get_memory(CUipcMemHandle *out, CUdeviceptr address) {
    size_t offset;
    allocation *a = memory_find(address, &offset);
    if (!out || !a || !ipc_is_possible(a)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = a->shared ? CUDA_SUCCESS : share(a);
    if (!result) write_identity(out->reserved, &a->shared->id);
    return result;
}

EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr address) {
    DRIVER_CALL(cuIpcGetMemHandle, NEED_CONTEXT, get_memory(out, address));
}

/* What this process has opened of another: the same memory, else any (NULL: nothing). */
static allocation *opened_of(const identity *id, bool *same) {
    allocation *found = NULL;
    *same = false;
    for (size_t k = 0; k < memory_count() && !*same; k++) {
        allocation *a = memory_at(k);
        if (!a || !a->live || a->kind != MEMORY_OPENED || a->shared->id.process != id->process)
            continue;
        *same = !memcmp(&a->shared->id, id, sizeof *id);
        found = a;
    }
    return found;
}

static CUresult map_file(CUdeviceptr *out, int file, const identity *id) {
    size_t offset;
    const size_t mapped = whole_pages(id->bytes);
    struct shared_memory *s = calloc(1, sizeof *s);
    if (!s) return CUDA_ERROR_OUT_OF_MEMORY;
    *s = (struct shared_memory){.id = *id, .file = -1, .references = 1};
    void *host = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, DATA);
    const CUresult result = host == MAP_FAILED
                                ? CUDA_ERROR_MAP_FAILED
                                : memory_window(MEMORY_OPENED, host, id->bytes, 0, out);
    if (result) {
        if (host != MAP_FAILED) munmap(host, mapped);
        free(s);
        return result;
    }
    allocation *a = memory_find(*out, &offset);
    a->mapped = mapped;
    a->shared = s;
    return CUDA_SUCCESS;
}

static CUresult open_memory(CUdeviceptr *out, const char *handle, unsigned flags) {
    enum { LAZY_ENABLE_PEER_ACCESS = 1 };
    identity id;
    bool same;
    CUresult result = capture_check_unsafe();
    if (result) return result;
    if (!out || flags != LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
    if (!read_identity(handle, SHARED_MEMORY, &id)) return CUDA_ERROR_INVALID_HANDLE;
    allocation *a = opened_of(&id, &same);
    /* CUDA allows one context for all memory of another process. */
    if (a && a->context != context_current()) return CUDA_ERROR_INVALID_HANDLE;
    if (same) {
        a->shared->references++;
        *out = memory_address(a);
        return CUDA_SUCCESS;
    }
    const int file = open_file(&id);
    if (file < 0) return CUDA_ERROR_INVALID_HANDLE;
    result = id.process == getpid() ? CUDA_ERROR_INVALID_CONTEXT : map_file(out, file, &id);
    close(file);
    return result;
}

EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags) {
    DRIVER_CALL(cuIpcOpenMemHandle, NEED_CONTEXT, open_memory(out, handle.reserved, flags));
}

static CUresult close_memory(CUdeviceptr address) {
    size_t offset;
    const CUresult result = capture_check_unsafe();
    const allocation *a = memory_find(address, &offset);
    if (result) return result;
    if (!a || offset || a->kind != MEMORY_OPENED) return CUDA_ERROR_INVALID_VALUE;
    if (!--a->shared->references) memory_drop_window(address);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
    DRIVER_CALL_IN(memory_context(address), cuIpcCloseMemHandle, close_memory(address));
}

/* ---- events ---- */

static CUresult get_event(CUipcEventHandle *out, CUevent e) {
    identity id;
    if (!out || !e) return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(e, HANDLE_EVENT) || !(e->flags & EVENT_INTERPROCESS) || e->opened)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!identify(SHARED_EVENT, -1, 0, &id)) return CUDA_ERROR_OPERATING_SYSTEM;
    write_identity(out->reserved, &id);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent e) {
    DRIVER_CALL_IN(context_of(e), cuIpcGetEventHandle, get_event(out, e));
}

static CUresult open_event(CUevent *out, const char *handle) {
    identity id;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (!read_identity(handle, SHARED_EVENT, &id) || (kill(id.process, 0) && errno == ESRCH))
        return CUDA_ERROR_MAP_FAILED;
    if (id.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
    const CUresult result = event_new(out, EVENT_INTERPROCESS | EVENT_DISABLE_TIMING);
    if (!result) (*out)->opened = true;
    return result;
}

EXPORT CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle) {
    DRIVER_CALL(cuIpcOpenEventHandle, NEED_CONTEXT, open_event(out, handle.reserved));
}
