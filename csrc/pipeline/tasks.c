/* Steps become queued in the order of their list within each queue, so a step whose predecessors are all
 * queued can be put on its stream at once, and streams are told of each other by events. Nothing here waits for
 * the device. */
#include "flow_steps.h"

#include <stdlib.h>

#include "errors.h"

enum { REST_NS = 2 * 1000 * 1000 };

static stage_way way_of(const smk_step *step) {
    return step->kind == SMK_COPY_OUT ? STAGE_OUT : STAGE_IN;
}

/* Where the step's end is. */
static CUstream stream_of(const flow_state *f, const smk_step *step) {
    const bool passed = f->passing && f->steps[step - f->flow->steps].elsewhere;
    return step->kind == SMK_COMPUTE ? f->lanes[step->lane]
           : passed                  ? f->passing
                                     : f->copies[way_of(step)];
}

/* ---- cutting ---- */

/* Memory that the copy engines reach: pinned, or registered by whoever owns it. */
static bool is_pinned(device *d, const char *address) {
    unsigned type =
        0; /* stays 0 of memory that the driver does not know; asked for one, it would be an error */
    CUpointer_attribute wanted = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void *value = &type;
    return d->cu->cuPointerGetAttributes(1, &wanted, &value, (CUdeviceptr)(uintptr_t)address) ==
               CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_HOST;
}

static bool is_direct(device *d, const smk_rectangle *r) {
    const char *last = r->host + (ptrdiff_t)(r->lines - 1) * r->host_pitch;
    const char *low = last < r->host ? last : r->host, *high = last < r->host ? r->host : last;
    return r->host_pitch >= (ptrdiff_t)r->width && is_pinned(d, low) &&
           is_pinned(d, high + r->width - 1);
}

/* Whether threads bring it to the engine sooner than it gets there: it takes short lines of very much memory, of many
 * pages, at half its rate. */
static bool is_read_slowly(const smk_rectangle *r) {
    enum { SHORT = 8 << 10, FAR = 64 << 20 }; /* bytes */
    return r->width <= SHORT && r->lines * (size_t)r->host_pitch > FAR;
}

/* Two at least, so that one is filled while the engine moves the other. */
static size_t piece_bytes(size_t bytes) {
    enum { PIECES = 2, LEAST = 512 << 10 };
    const size_t share = (bytes / PIECES + LEAST - 1) / LEAST * LEAST;
    return share < LEAST ? LEAST : share < STAGE_BYTES ? share : STAGE_BYTES;
}

flow_cut flow_cut_into(const smk_rectangle *r, size_t most) {
    flow_cut c = {.width = r->width < most ? r->width : most};
    if (c.width == 0 || r->lines == 0) return c;
    c.lines = most / c.width < r->lines ? most / c.width : r->lines;
    c.across = (r->width + c.width - 1) / c.width;
    c.n = c.across * ((r->lines + c.lines - 1) / c.lines);
    return c;
}

smk_rectangle flow_part(const smk_rectangle *whole, const flow_cut *c, size_t i) {
    smk_rectangle r = *whole;
    const size_t x = i % c->across * c->width, y = i / c->across * c->lines;
    r.host += (ptrdiff_t)x + (ptrdiff_t)y * r.host_pitch;
    r.offset += x + y * r.pitch;
    r.width = r.width - x < c->width ? r.width - x : c->width;
    r.lines = r.lines - y < c->lines ? r.lines - y : c->lines;
    return r;
}

smk_rectangle flow_joined(smk_rectangle r) {
    if (r.lines == 1 || (r.host_pitch == (ptrdiff_t)r.width && r.pitch == r.width)) {
        r.width *= r.lines;
        r.lines = 1;
        r.host_pitch = (ptrdiff_t)r.width;
        r.pitch = r.width;
    }
    return r;
}

static void cut(flow_state *f, const smk_step *step, step_state *s) {
    const smk_rectangle r = flow_joined(step->rectangle);
    if (r.width == 0 || r.lines == 0) return;
    const size_t bytes = r.width * r.lines;
    s->whole = r;
    s->direct = is_direct(f->d, &r);
    s->cut = flow_cut_into(&r, s->direct ? bytes : piece_bytes(bytes));
}

/* ---- steps in their queues ---- */

/* The next step of the kind, from `at` on. */
static size_t find(const flow_state *f, smk_step_kind kind, size_t at) {
    while (at < f->flow->n_steps && f->flow->steps[at].kind != kind)
        at++;
    return at;
}

/* The next one that has something to hand out. */
static size_t find_copy(const flow_state *f, smk_step_kind kind, size_t at) {
    at = find(f, kind, at);
    while (at < f->flow->n_steps && (f->steps[at].cut.n == 0 || f->steps[at].elsewhere))
        at = find(f, kind, at + 1);
    return at;
}

smk_code flow_steps_make(flow_state *f, smk_status *status) {
    const smk_flow *flow = f->flow;
    bool staged = false;
    f->steps = calloc(flow->n_steps + 1, sizeof *f->steps);
    if (!f->steps) return smk_fail_memory(status, flow->n_steps * sizeof *f->steps, "a flow");
    for (size_t i = 0; i < flow->n_steps; i++) {
        const smk_step *step = &flow->steps[i];
        if (step->kind != SMK_COMPUTE) cut(f, step, &f->steps[i]);
        if (step->kind == SMK_COPY_IN && f->steps[i].direct)
            staged |= is_read_slowly(&f->steps[i].whole);
        if (!f->steps[i].direct) f->staged[way_of(step)] += f->steps[i].cut.n;
        for (int j = 0; j < step->n_after; j++) {
            step_state *before = &f->steps[step->after[j]];
            const bool same = stream_of(f, step) == stream_of(f, &flow->steps[step->after[j]]);
            if (step->kind == SMK_COPY_OUT && f->steps[i].direct) {
                before->told = true;
                continue;
            }
            if (before->done || same) continue;
            CUresult result = f->d->cu->cuEventCreate(&before->done, CU_EVENT_DISABLE_TIMING);
            if (result) return device_fail(f->d, result, SMK_ERROR, status, "cuEventCreate");
        }
    }
    for (size_t i = 0; staged && i < flow->n_steps; i++) /* some of each would be slower yet */
        if (flow->steps[i].kind == SMK_COPY_IN) flow_stage(f, i);
    for (int kind = 0; kind < SMK_N_KINDS; kind++) {
        f->next[kind] = find_copy(f, (smk_step_kind)kind, 0);
        f->first[kind] = find(f, (smk_step_kind)kind, 0);
    }
    return SMK_OK;
}

void flow_steps_free(flow_state *f) {
    for (size_t i = 0; f->steps && i < f->flow->n_steps; i++) {
        if (f->steps[i].done) f->d->cu->cuEventDestroy(f->steps[i].done);
        launch_free(&f->steps[i].plan);
    }
    free(f->steps);
    free(f->common);
    f->steps = NULL;
    f->common = NULL;
}

void flow_stage(flow_state *f, size_t step) {
    step_state *s = &f->steps[step];
    if (!s->direct) return;
    s->direct = false;
    s->cut = flow_cut_into(&s->whole, piece_bytes(s->whole.width * s->whole.lines));
    f->staged[way_of(&f->flow->steps[step])] += s->cut.n;
}

void flow_give_up(flow_state *f, size_t step) {
    const stage_way way = way_of(&f->flow->steps[step]);
    const smk_step_kind kind = f->flow->steps[step].kind;
    f->steps[step].elsewhere = true;
    f->staged[way] -= f->steps[step].cut.n;
    f->next[kind] = find_copy(f, kind, f->next[kind]);
}

/* The functions below, down to the line, are called with the lock held; follow, end and start need none. */

void flow_change(flow_state *f) {
    f->changes++;
    pthread_cond_broadcast(&f->changed);
}

static void stop(flow_state *f, const smk_status *why) {
    if (!f->stopped) f->status = *why;
    f->stopped = true;
    flow_change(f);
}

static bool is_ready(const flow_state *f, const smk_step *step) {
    for (int i = 0; i < step->n_after; i++)
        if (!f->steps[step->after[i]].queued) return false;
    return true;
}

/* The kernels that the step waits for have ended. Asked before a copy to memory that is the caller's: a kernel that
 * never ends must not leave one behind that waits to write there. */
static bool has_ended(const flow_state *f, const smk_step *step) {
    for (int i = 0; i < step->n_after; i++) {
        const uint32_t before = step->after[i];
        const int lane = f->flow->steps[before].lane;
        if (!stage_has_reached(&f->ends[lane], f->steps[before].mark)) return false;
    }
    return true;
}

/* What the step's stream does from now on comes after all that it waits for. */
static smk_code follow(const flow_state *f, const smk_step *step, smk_status *status) {
    const CUstream stream = stream_of(f, step);
    for (int i = 0; i < step->n_after; i++) {
        const uint32_t before = step->after[i];
        if (!f->steps[before].done || stream == stream_of(f, &f->flow->steps[before])) continue;
        CUresult result = f->d->cu->cuStreamWaitEvent(stream, f->steps[before].done, 0);
        if (result) return flow_fail(f, result, "cuStreamWaitEvent", status);
    }
    return SMK_OK;
}

/* Tells of the step's end. */
static smk_code end(flow_state *f, size_t i, smk_status *status) {
    step_state *s = &f->steps[i];
    const smk_step *step = &f->flow->steps[i];
    if (s->done) {
        CUresult result = f->d->cu->cuEventRecord(s->done, stream_of(f, step));
        if (result) return flow_fail(f, result, "cuEventRecord", status);
    }
    if (s->told) {
        CUresult result = stage_expect(f->d, &f->ends[step->lane], stream_of(f, step));
        if (result) return flow_fail(f, result, "cuStreamWriteValue32", status);
        s->mark = f->ends[step->lane].expected;
    }
    return SMK_OK;
}

/* Ends the copies that are on their stream. A queue is ended in its order, so that the last step stands for
 * those before it, whichever thread was faster. */
static void end_copies(flow_state *f, smk_step_kind kind) {
    size_t i = f->first[kind];
    for (; i < f->flow->n_steps && f->steps[i].on_queue == f->steps[i].cut.n;
         i = find(f, kind, i + 1)) {
        smk_status status = {0};
        if (end(f, i, &status)) {
            stop(f, &status);
            break;
        }
        f->steps[i].queued = true;
    }
    f->first[kind] = i;
}

static smk_code start(flow_state *f, size_t i, smk_status *status) {
    wait_for_lock(&f->calls);
    smk_code code = follow(f, &f->flow->steps[i], status);
    if (!code) {
        atomic_store(&f->launched, true);
        code = launch_all(f->d, &f->steps[i].plan, status);
    }
    if (!code) code = end(f, i, status);
    pthread_mutex_unlock(&f->calls);
    return code;
}

/* Puts kernels on their streams, up to the first that waits for something that is not on its own. One thread does, and
 * lets go of the lock meanwhile, as the others have to know what to do next; it also finds what they make ready. */
static void compute(flow_state *f) {
    if (f->starts) return;
    f->starts = true;
    for (size_t i = f->first[SMK_COMPUTE];
         !f->stopped && i < f->flow->n_steps && is_ready(f, &f->flow->steps[i]);
         i = f->first[SMK_COMPUTE]) {
        smk_status status = {0};
        pthread_mutex_unlock(&f->lock);
        const smk_code code = start(f, i, &status);
        wait_for_lock(&f->lock);
        if (code) {
            stop(f, &status);
        } else {
            f->steps[i].queued = true;
            f->first[SMK_COMPUTE] = find(f, SMK_COMPUTE, i + 1);
            flow_change(f);
        }
    }
    f->starts = false;
}

/* There may be more to do: after a copy, and at the start. */
static void proceed(flow_state *f) {
    end_copies(f, SMK_COPY_IN);
    end_copies(f, SMK_COPY_OUT);
    compute(f);
    flow_change(f);
}

flow_answer flow_take(flow_state *f, stage_way way, flow_asker who, flow_piece *out) {
    const smk_step_kind kind = way == STAGE_IN ? SMK_COPY_IN : SMK_COPY_OUT;
    const size_t i = f->next[kind];
    if (f->stopped || i == f->flow->n_steps || (who.helps && !f->staged[way])) return FLOW_NO_MORE;
    const smk_step *step = &f->flow->steps[i];
    step_state *s = &f->steps[i];
    if (s->direct ? !f->may_put : !who.has_slot) return FLOW_NOT_YET;
    if (s->taken == 0) {
        if (!is_ready(f, step)) return FLOW_NOT_YET;
        if (s->direct && way == STAGE_OUT && (who.helps || !has_ended(f, step)))
            return FLOW_NOT_YET;
        smk_status status = {0};
        if (follow(f, step, &status)) {
            stop(f, &status);
            return FLOW_NOT_YET;
        }
    }
    *out = (flow_piece){i, flow_part(&s->whole, &s->cut, s->taken), s->direct};
    s->taken++;
    f->staged[way] -= !s->direct;
    if (s->taken == s->cut.n) f->next[kind] = find_copy(f, kind, i + 1);
    return FLOW_TAKEN;
}

/* ------------------------------------------------------------------------------------------- */

void flow_start(flow_state *f) {
    wait_for_lock(&f->lock);
    proceed(f);
    pthread_mutex_unlock(&f->lock);
}

void flow_put(flow_state *f, const flow_piece *piece, flow_slot *slot) {
    step_state *s = &f->steps[piece->step];
    const bool out = f->flow->steps[piece->step].kind == SMK_COPY_OUT;
    const size_t bytes = piece->rectangle.width * piece->rectangle.lines;
    wait_for_lock(&f->lock);
    *(s->elsewhere && f->passing ? &f->bytes_peer : &f->bytes[out ? STAGE_OUT : STAGE_IN]) += bytes;
    f->bytes_direct += piece->direct ? bytes : 0;
    if (slot) {
        f->bytes_staged += bytes;
        slot->open = out;
        slot->queued = true;
        flow_change(f);
    }
    if (++s->on_queue == s->cut.n && !f->stopped) proceed(f);
    pthread_mutex_unlock(&f->lock);
}

smk_code flow_fail(const flow_state *f, CUresult result, const char *call, smk_status *status) {
    const bool named = atomic_load(&f->launched) && driver_result_is_sticky(result);
    return device_fail(f->d, result, SMK_ERROR, status, "%s%s%s", named ? f->what : "",
                       named ? ", as told by " : "", call);
}

void flow_stop(flow_state *f, const smk_status *why) {
    wait_for_lock(&f->lock);
    stop(f, why);
    pthread_mutex_unlock(&f->lock);
}

void flow_rest(flow_state *f, unsigned changes) {
    wait_for_lock(&f->lock);
    if (f->changes == changes) wait_for_change(&f->changed, &f->lock, REST_NS);
    pthread_mutex_unlock(&f->lock);
}
