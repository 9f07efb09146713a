/* Two observers of one launch; see observer_pair.h. */
#include "observer_pair.h"

#include <stdlib.h>

typedef struct pair_state {
    const observer_pair *pair;
    void *first, *second;
} pair_state;

/* Calls a hook of both observers, unless it is NULL. */
#define BOTH(pair, hook, first_state, second_state, ...)                                           \
    do {                                                                                           \
        if ((pair)->first.hook) (pair)->first.hook(first_state, __VA_ARGS__);                      \
        if ((pair)->second.hook) (pair)->second.hook(second_state, __VA_ARGS__);                   \
    } while (0)

static bool on_launch(void *self, const struct launch *launch, bool *sequential) {
    const observer_pair *p = self;
    return (!p->first.launch || p->first.launch(p->first.self, launch, sequential)) &&
           (!p->second.launch || p->second.launch(p->second.self, launch, sequential));
}

static void on_join(void *self, void *state) {
    const observer_pair *p = self;
    pair_state *s = state;
    if (s->first) p->first.join(p->first.self, s->first);
    if (s->second) p->second.join(p->second.self, s->second);
    free(s);
}

static void *on_fork(void *self) {
    const observer_pair *p = self;
    pair_state *s = malloc(sizeof *s);
    if (!s) return NULL;
    *s = (pair_state){p, p->first.fork(p->first.self), p->second.fork(p->second.self)};
    if (s->first && s->second) return s;
    on_join(self, s);
    return NULL;
}

static void on_finish(void *self) {
    const observer_pair *p = self;
    if (p->first.finish) p->first.finish(p->first.self);
    if (p->second.finish) p->second.finish(p->second.self);
}

static void on_memory(void *state, const emu_request *request) {
    const pair_state *s = state;
    BOTH(s->pair, memory, s->first, s->second, request);
}

static void on_moved(void *state, const emu_move *move) {
    const pair_state *s = state;
    BOTH(s->pair, moved, s->first, s->second, move);
}

/* At most one of the two has this hook. */
static emu_executed *on_executed(void *state, const ptx_function *function) {
    const pair_state *s = state;
    const emu_observer *first = &s->pair->first, *second = &s->pair->second;
    return first->executed    ? first->executed(s->first, function)
           : second->executed ? second->executed(s->second, function)
                              : NULL;
}

static void on_barrier(void *state, const ptx_instruction *ptx, uint32_t warp, uint32_t barrier,
                       bool complete) {
    const pair_state *s = state;
    BOTH(s->pair, barrier, s->first, s->second, ptx, warp, barrier, complete);
}

static void on_sync(void *state, const emu_sync *event) {
    const pair_state *s = state;
    BOTH(s->pair, sync, s->first, s->second, event);
}

static void on_block(void *state, const uint32_t block[3], uint32_t member, bool begin) {
    const pair_state *s = state;
    BOTH(s->pair, block, s->first, s->second, block, member, begin);
}

static void on_step(void *state, const emu_step *step) {
    const pair_state *s = state;
    BOTH(s->pair, step, s->first, s->second, step);
}

static bool on_exhausted(void *state) {
    const pair_state *s = state;
    const emu_observer *first = &s->pair->first, *second = &s->pair->second;
    return (first->exhausted && first->exhausted(s->first)) ||
           (second->exhausted && second->exhausted(s->second));
}

static void on_fault(void *self, const emu_fault *fault) {
    const observer_pair *p = self;
    BOTH(p, fault, p->first.self, p->second.self, fault);
}

emu_observer observer_of_pair(observer_pair *pair) {
    return (emu_observer){.self = pair,
                          .launch = on_launch,
                          .fork = on_fork,
                          .join = on_join,
                          .finish = on_finish,
                          .memory = on_memory,
                          .moved = pair->first.moved || pair->second.moved ? on_moved : NULL,
                          .executed = on_executed,
                          .barrier = on_barrier,
                          .sync = on_sync,
                          .block = on_block,
                          .step = pair->first.step || pair->second.step ? on_step : NULL,
                          .exhausted = on_exhausted,
                          .fault = on_fault};
}
