/* What is queued on a stream, or is a node of a graph: a kernel, a copy, ... with all that it needs
 * to run later.
 *
 * Every call that takes a stream makes a piece of work and submits it (work.c). A stream that is
 * captured makes a node of it (capture.c); otherwise it runs.
 */
#ifndef DRIVER_WORK_H
#define DRIVER_WORK_H

#include "driver.h"

typedef enum work_kind {
    WORK_EMPTY,
    WORK_KERNEL,
    WORK_COPY,
    WORK_SET,
    WORK_HOST,
    WORK_GRAPH,       /* of a child */
    WORK_CONDITIONAL, /* graphs that run if, or while, a condition holds */
    WORK_RECORD,      /* an event */
    WORK_WAIT,        /* for an event */
    WORK_ALLOC,
    WORK_FREE
} work_kind;

typedef struct kernel_work {
    CUfunction function;
    smk_launch launch; /* its args are owned */
    size_t args_bytes;
} kernel_work;

/* CUgraphConditionalNodeType */
typedef enum conditional_type { RUN_IF, RUN_WHILE, RUN_SWITCH } conditional_type;

typedef struct conditional_work {
    struct condition *condition;
    conditional_type type;
    unsigned n;
    CUgraph *bodies; /* owned */
} conditional_work;

typedef struct work {
    work_kind kind;
    union {
        kernel_work kernel;
        CUDA_MEMCPY3D copy;
        CUDA_MEMSET_NODE_PARAMS set;
        CUDA_HOST_NODE_PARAMS host;
        CUgraph graph; /* owned */
        conditional_work conditional;
        CUevent event;
        struct {
            CUdeviceptr address;
            size_t bytes; /* WORK_ALLOC */
        } memory;
    } of;
} work;

/* Runs the work, or adds it to the graph that the stream captures. Takes what the work owns. */
CUresult work_submit(CUstream stream, work *w);
CUresult work_run(const work *w);
void work_free(work *w);
/* The graphs that are part of it. */
size_t work_graphs(work *w, CUgraph **out);
/* A copy that owns its own. */
CUresult work_clone(const work *from, work *out);

/* ---- queue.c: with --shuffle, work runs when the program waits for it ---- */

bool queue_wanted(void);
/* Takes what the work owns, unless it fails. */
CUresult queue_submit(CUstream stream, work *w);
CUresult queue_wait_stream(CUstream stream);
CUresult queue_wait_event(CUevent e);
CUresult queue_query_stream(CUstream stream);
CUresult queue_query_event(CUevent e);
/* Whether its last record has not run. */
bool queue_has_event(CUevent e);

/* ---- background.c ---- */

bool background_wanted(const work *w);
/* Takes what the work owns, unless it fails to start. */
CUresult background_run(work *w);

/* ---- copy.c ---- */

CUresult copy_run(const CUDA_MEMCPY3D *c);
/* What can be said of a copy or a set before it runs. */
CUresult copy_check(const CUDA_MEMCPY3D *c);
/* The same, and whether both sides are inside of memory; reports it if not. */
CUresult copy_reach(const CUDA_MEMCPY3D *c);
/* Where a copy that is not empty begins to read, after copy_reach. */
const unsigned char *copy_source(const CUDA_MEMCPY3D *c);
CUresult set_check(const CUDA_MEMSET_NODE_PARAMS *s);
CUresult set_run(const CUDA_MEMSET_NODE_PARAMS *s);

/* ---- launch.c ---- */

CUresult launch_prepare(CUfunction f, const CUlaunchConfig *config, void **params, void **extra,
                        work *out);
CUresult launch_kernel(const kernel_work *w);
/* Whether the GPU can run a launch of this size. */
CUresult launch_check(CUfunction f, const smk_launch *l);
/* Runs it without its children, which it adds to the list. */
CUresult launch_once(CUfunction f, const smk_launch *l, smk_children *children);
CUresult launch_attribute(const CUlaunchAttribute *a, smk_launch *out);

/* ---- children.c ---- */

/* Runs the children of a launch of the module's kernels, and theirs. */
CUresult children_run(CUmodule m, smk_children *children);
void children_drop(smk_children *children);

/* ---- array.c, mipmap.c, texture.c: arrays, textures and surfaces ---- */

/* The storage of an array is an allocation without gaps, in the order of smk_texture. */
struct array {
    handle head;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    smk_texture form; /* types and sizes */
    CUdeviceptr address;
    struct mipmap *mipmap; /* it is a level of; NULL: none */
};

CUresult array_form(const CUDA_ARRAY3D_DESCRIPTOR *d, smk_texture *out);
CUresult array_requirements(size_t *out, const smk_texture *form, CUdevice device);
CUresult mipmap_form(CUmipmappedArray m, smk_texture *form, CUdeviceptr *address);
/* Its memory stays. */
void mipmap_drop(void *object);
bool texel_type_of(unsigned format, smk_texel_type *out);
void texture_drop(void *object);
/* The textures and surfaces of all contexts, as those of a launch. The caller frees them; NULL and
 * *n = 0: there are none. */
smk_texture *textures_list(size_t *n);

/* ---- graph.c ---- */

struct node {
    handle head;
    CUgraph graph;
    work work;
    struct node **needs; /* the nodes that it comes after */
    size_t n_needs, at;  /* at: its place in the graph */
    bool disabled;       /* of an executable graph */
    CUgraphNode original;
    void **pointers; /* to the arguments of a kernel, for cuGraphKernelNodeGetParams */
};

struct graph {
    handle head;
    struct node **nodes;
    size_t n;
    CUgraph original;     /* that it is a clone of */
    bool owned;           /* by a node, or an executable graph */
    CUgraphExec launched; /* a clone of this executable graph, to run once; NULL: none */
    struct graph_object *objects;
};

enum { GRAPH_UPLOAD = 2, GRAPH_DEVICE_LAUNCH = 4 }; /* flags */

struct graph_exec {
    handle head;
    CUgraph graph; /* a clone */
    uint64_t flags;
    bool uploaded;    /* kernels may launch it */
    bool asked, runs; /* a kernel has launched it; it runs */
};

CUgraph graph_new(void);
void graph_free(CUgraph g);
CUresult graph_clone(CUgraph g, CUgraph *out);
CUresult graph_run(CUgraph g);
CUresult graph_run_nodes(CUgraph g);
/* Adds a node after `needs`; takes what the work owns. */
CUresult graph_add(CUgraph g, const CUgraphNode *needs, size_t n, work *w, CUgraphNode *out);
void graph_remove(CUgraphNode node);
CUresult graph_connect(CUgraphNode from, CUgraphNode to);
CUresult graph_disconnect(CUgraphNode from, CUgraphNode to);
bool node_needs(const struct node *to, const struct node *from);
/* The node of a clone, or of a child's in it; NULL: there is none. */
CUgraphNode graph_find_clone(CUgraph g, const struct node *original);
/* Whether its nodes have an order. */
CUresult graph_check(CUgraph g);
/* *why must be 0; it and *node say what cannot be updated. */
CUresult graph_update(CUgraph to, CUgraph from, unsigned *why, CUgraphNode *node);

CUresult object_new(CUuserObject *out, void *value, CUhostFn destroy, unsigned references);
CUresult object_retain(CUuserObject o, unsigned n);
CUresult object_release(CUuserObject o, uint64_t n);
CUresult graph_retain(CUgraph g, CUuserObject o, uint64_t n, bool move);
CUresult graph_release(CUgraph g, CUuserObject o, uint64_t n);

/* ---- device_graph.c ---- */

/* Runs the graph, and then those that its kernels launch as its tail. */
CUresult graph_run_launched(CUgraph g, CUgraphExec e);
/* A node that graphs for launches from kernels cannot have; NULL: there is none. */
CUgraphNode graph_unfit_node(CUgraph g);
uint64_t graph_current(void);                        /* smk_job.graph */
unsigned graph_ask(uint64_t graph, uint64_t stream); /* smk_job.ask_graph */
CUresult graph_child_run(const smk_child *c);
void graph_child_drop(const smk_child *c);

/* ---- condition.c ---- */

CUresult conditional_make(CUDA_CONDITIONAL_NODE_PARAMS *p, work *out);
CUresult conditional_run(const conditional_work *c);
CUresult conditional_clone(const conditional_work *from, conditional_work *out);
void conditional_free(conditional_work *c);
/* At a launch of the graph: conditions that have a default value get it. */
void conditions_reset(CUgraph g);
/* From kernels. */
CUresult condition_set(uint64_t handle, unsigned value);

/* ---- capture.c ---- */

/* The capture that a stream adds to; NULL: none. An error if it may not be used now. */
typedef struct capture capture;
CUresult capture_of(CUstream stream, capture **out);
CUresult capture_add(capture *into, CUstream stream, work *w);
/* Whether a capture adds to the graph, or one that is part of it, now: then it is not to be changed
 * otherwise. */
bool capture_uses(const struct graph *g);
bool capture_uses_work(work *w);
/* The graph is freed: captures that add to it are invalid. */
void capture_forget(const struct graph *g);
/* Calls that wait, or that captures do not allow: the error, after which the capture is invalid. */
CUresult capture_check_unsafe(void);
CUresult capture_check_wait(CUstream stream); /* a NULL stream: for all of them */
CUresult capture_check_event(CUevent e);
/* An event that is recorded in a captured stream marks a place in the graph. */
CUresult capture_record(capture *into, CUstream stream, CUevent e);
/* A stream waits for an event; *done: that was within a capture. */
CUresult capture_wait(CUstream stream, CUevent e, bool *done);
void stream_free(CUstream s);
/* api_stream.c */
CUresult event_new(CUevent *out, unsigned flags);
void event_free(CUevent e);
void event_forget_capture(CUevent e); /* it is recorded outside of one */

#endif
