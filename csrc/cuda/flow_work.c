/* The threads of a flow: each moves pieces between host memory and its stage, whichever way there is something
 * to move.
 *
 *      host memory --(thread)--> slot --(copy engine)--> device        device --> slot --> host memory
 *
 * One core copies 10 GB/s, the bus moves 55 each way at once, so many threads share the work; a thread that
 * waits for its slot in one direction works in the other. The caller is one of them, and the one that listens
 * for signals. What memory is pinned already moves without a stop in between.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "flow_work.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "team.h"

enum {
    MOST_THREADS = 16,
    THREAD_BYTES = 4
        << 20,            /* an idle core takes 0.2 ms to wake: half of what copying these takes */
    SPIN_NS = 200 * 1000, /* a helper, before it sleeps ... */
    CALLER_SPIN_NS = 500 * 1000, /* ... and the caller, whom nobody would wake */
    NAP_NS = 20 * 1000,
    SPINS = 50, /* 2 us */
    ASK_NS = 1000 * 1000,
    NONE = -1
};

/* One of the flow's threads. */
typedef struct worker {
    flow_state *flow;
    stage *stage;
    patience *patience;        /* of the caller's thread alone */
    int next_in;               /* slot */
    flow_piece pending[SLOTS]; /* on their way out; the oldest is in slot first_out */
    int n_pending, first_out;
    int64_t idle_since, asked; /* 0: it is not */
    smk_status status;
} worker;

/* ---- moving pieces ---- */

static smk_code fail(worker *w, CUresult result, const char *call) {
    return flow_fail(w->flow, result, call, &w->status);
}

/* The caller's chance to hear of a signal. */
static smk_code listen(worker *w) {
    return w->patience ? patience_check(w->patience, &w->status) : SMK_OK;
}

/* Lines of a rectangle; those of a slot follow each other. */
static void copy_lines(char *to, ptrdiff_t to_pitch, const char *from, ptrdiff_t from_pitch,
                       const smk_rectangle *r) {
    if (r->lines == 1 || (to_pitch == (ptrdiff_t)r->width && from_pitch == to_pitch)) {
        memcpy(to, from, r->width * r->lines);
        return;
    }
    for (size_t i = 0; i < r->lines; i++)
        memcpy(to + (ptrdiff_t)i * to_pitch, from + (ptrdiff_t)i * from_pitch, r->width);
}

/* Puts the copy between a place in the host's memory and the device on its stream. */
static smk_code put_copy(worker *w, const flow_piece *piece, char *host, size_t host_pitch,
                         int slot) {
    flow_state *f = w->flow;
    const smk_rectangle *r = &piece->rectangle;
    const stage_way way = f->flow->steps[piece->step].kind == SMK_COPY_OUT ? STAGE_OUT : STAGE_IN;
    const CUstream stream = piece->stream;
    const CUdeviceptr address = f->addresses[r->buffer] + r->offset;
    const bool joined = r->lines == 1 || (host_pitch == r->width && r->pitch == r->width);
    CUresult result;
    const char *call;
    if (joined && way == STAGE_OUT) {
        call = "cuMemcpyDtoHAsync";
        result = f->d->cu->cuMemcpyDtoHAsync(host, address, r->width * r->lines, stream);
    } else if (joined) {
        call = "cuMemcpyHtoDAsync";
        result = f->d->cu->cuMemcpyHtoDAsync(address, host, r->width * r->lines, stream);
    } else {
        CUDA_MEMCPY2D copy = {.WidthInBytes = r->width, .Height = r->lines};
        if (way == STAGE_OUT) {
            copy.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy.srcDevice = address;
            copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = host;
            copy.srcPitch = r->pitch, copy.dstPitch = host_pitch;
        } else {
            copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = host;
            copy.dstMemoryType = CU_MEMORYTYPE_DEVICE, copy.dstDevice = address;
            copy.srcPitch = host_pitch, copy.dstPitch = r->pitch;
        }
        call = "cuMemcpy2DAsync";
        result = f->d->cu->cuMemcpy2DAsync(&copy, stream);
    }
    if (!result && !piece->direct) {
        call = "cuStreamWriteValue32";
        result = stage_expect(f->d, w->stage, way, slot, stream);
    }
    if (result) return fail(w, result, call);
    flow_put(f, piece);
    return SMK_OK;
}

static smk_code put_direct(worker *w, const flow_piece *piece) {
    const smk_rectangle *r = &piece->rectangle;
    return put_copy(w, piece, r->host, (size_t)r->host_pitch, NONE);
}

static smk_code move_in(worker *w, const flow_piece *piece) {
    const smk_rectangle *r = &piece->rectangle;
    if (piece->direct) return put_direct(w, piece);
    const int slot = w->next_in;
    char *memory = w->stage->slots[STAGE_IN][slot];
    w->next_in = (slot + 1) % SLOTS;
    copy_lines(memory, (ptrdiff_t)r->width, r->host, r->host_pitch, r);
    return put_copy(w, piece, memory, r->width, slot);
}

static void deliver(worker *w, const smk_rectangle *r) {
    if (w->flow->flow->delivered) atomic_fetch_add(w->flow->flow->delivered, r->width * r->lines);
}

static smk_code begin_out(worker *w, const flow_piece *piece) {
    if (piece->direct) {
        deliver(w, &piece->rectangle);
        return put_direct(w, piece);
    }
    const int slot = (w->first_out + w->n_pending) % SLOTS;
    w->pending[slot] = *piece;
    w->n_pending++;
    return put_copy(w, piece, w->stage->slots[STAGE_OUT][slot], piece->rectangle.width, slot);
}

static smk_code end_out(worker *w) {
    const int slot = w->first_out;
    const smk_rectangle *r = &w->pending[slot].rectangle;
    copy_lines(r->host, r->host_pitch, w->stage->slots[STAGE_OUT][slot], (ptrdiff_t)r->width, r);
    deliver(w, r);
    w->first_out = (slot + 1) % SLOTS;
    w->n_pending--;
    return SMK_OK;
}

/* ---- what to do next ---- */

static bool oldest_has_come(const worker *w) {
    return w->n_pending && stage_has_come(w->stage, STAGE_OUT, w->first_out);
}

/* A few microseconds, or until there is something new, without the lock. */
static void spin(const worker *w, unsigned changes) {
    const bool had_slot = stage_has_come(w->stage, STAGE_IN, w->next_in);
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&w->flow->changes) != changes || oldest_has_come(w) ||
            stage_has_come(w->stage, STAGE_IN, w->next_in) != had_slot)
            return;
        team_relax();
    }
}

/* There was nothing to do: a little later there may be. Copies that fail never tell; a stream does. */
static smk_code wait_a_little(worker *w, unsigned changes, bool for_device) {
    flow_state *f = w->flow;
    const int64_t time = wait_now();
    if (!w->idle_since) w->idle_since = w->asked = time;
    if (time - w->asked > ASK_NS) {
        CUresult result = f->d->cu->cuStreamQuery(f->lanes[0]);
        if (result && result != CUDA_ERROR_NOT_READY) return fail(w, result, "cuStreamQuery");
        w->asked = time;
    }
    if (time - w->idle_since < (w->patience ? CALLER_SPIN_NS : SPIN_NS))
        spin(w, changes);
    else if (for_device)
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    else
        flow_rest(f, changes);
    return SMK_OK;
}

/* What this thread finds to do, until there is nothing left. Results first: they free the device's memory. It never
 * waits for one thing while there may be another. */
static smk_code work(worker *w) {
    for (;;) {
        flow_state *f = w->flow;
        flow_piece piece;
        flow_answer in = FLOW_NOT_YET, out = FLOW_NOT_YET;
        const bool helps = !w->patience;
        const flow_asker for_in = {stage_has_come(w->stage, STAGE_IN, w->next_in), helps};
        const flow_asker for_out = {w->n_pending < SLOTS, helps};
        const unsigned changes = atomic_load(&f->changes);
        if (atomic_load(&f->stopped)) return SMK_INTERRUPTED;
        smk_code code = listen(w);
        if (code) return code;
        if ((out = flow_take(f, STAGE_OUT, for_out, &piece)) == FLOW_TAKEN)
            code = begin_out(w, &piece);
        else if (oldest_has_come(w))
            code = end_out(w);
        else if ((in = flow_take(f, STAGE_IN, for_in, &piece)) == FLOW_TAKEN)
            code = move_in(w, &piece);
        else if (w->n_pending == 0 && in == FLOW_NO_MORE && out == FLOW_NO_MORE)
            return SMK_OK;
        else {
            code = wait_a_little(w, changes, w->n_pending || !for_in.has_slot || !helps);
            if (code) return code;
            continue;
        }
        w->idle_since = 0;
        if (code) return code;
    }
}

static void work_and_tell(worker *w) {
    if (work(w) && w->status.code) flow_stop(w->flow, &w->status);
}

static void help(void *argument) {
    worker *w = argument;
    device *d;
    if (device_enter(w->flow->d->info.ordinal, &d, &w->status)) {
        flow_stop(w->flow, &w->status);
        return;
    }
    work_and_tell(w);
    device_leave(d);
}

/* ---- all of them ---- */

static size_t staged_bytes(const flow_state *f) {
    size_t bytes = 0;
    for (size_t i = 0; i < f->flow->n_steps; i++)
        bytes += f->steps[i].direct ? 0 : f->steps[i].whole.width * f->steps[i].whole.lines;
    return bytes;
}

static int threads_for(const flow_state *f) {
    cpu_set_t cores;
    int n = sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
    const size_t useful = (staged_bytes(f) + THREAD_BYTES - 1) / THREAD_BYTES;
    n = f->flow->share > 1 ? n / f->flow->share : n;
    n = n < 1 ? 1 : n < MOST_THREADS ? n : MOST_THREADS;
    return useful < 1 ? 1 : useful < (size_t)n ? (int)useful : n;
}

/* The caller works, too; where there is no memory or no thread for all of them, fewer do. */
smk_code flow_work(flow_state *f, patience *p, int *n_workers, smk_status *status) {
    worker workers[MOST_THREADS];
    helper *helpers[MOST_THREADS];
    const int wanted = threads_for(f);
    int n = 0;
    for (; n < wanted; n++) {
        smk_status unused = {0};
        workers[n] = (worker){.flow = f, .patience = n == 0 ? p : NULL};
        if (stage_take(f->d, &workers[n].stage, n == 0 ? status : &unused)) break;
        if (n > 0 && !(helpers[n] = team_start(help, &workers[n]))) {
            stage_give(f->d, workers[n].stage);
            break;
        }
    }
    *n_workers = n;
    if (n == 0) return status->code;
    flow_start(f);
    work_and_tell(&workers[0]);
    for (int i = 1; i < n; i++)
        team_end(helpers[i]);
    for (int i = 0; i < n; i++)
        stage_give(f->d, workers[i].stage);
    return f->stopped ? smk_fail(status, f->status.code, "%s", f->status.message) : SMK_OK;
}
