/* Compiling and running models, through plain C: what the core, which knows no OpenVINO, asks of the library
 * that is built for one release of it. No type of C++ is on both sides, so each may be built by another
 * compiler.
 *
 * Texts are in UTF-8 and end with zero. What a function is given is read before it returns. What it gives
 * belongs to the profiler or the model that it came from and stays valid until the same function is called
 * again with it.
 *
 * Functions return OV_AUTOPLACE_OK, or say why not in ov_autoplace_last_error(). A profiler, a model or a
 * request is used by one thread at a time; different requests of a model may be used by different ones. */
#ifndef OV_AUTOPLACE_PROFILER_API_H
#define OV_AUTOPLACE_PROFILER_API_H

#include <stddef.h>
#include <stdint.h>

#include "../extension/schedule_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with every change of this file. */
#define OV_AUTOPLACE_INTERFACE 1

enum {
    OV_AUTOPLACE_OK = 0,
    OV_AUTOPLACE_FAILED = 1,
    OV_AUTOPLACE_STOPPED = 2 /* because a check wanted it */
};

typedef struct ov_autoplace_profiler ov_autoplace_profiler; /* an ov::Core with its devices */
typedef struct ov_autoplace_model ov_autoplace_model;       /* a compiled model with valid inputs */
typedef struct ov_autoplace_request ov_autoplace_request;   /* one inference of it at a time */

typedef struct {
    const char* const* items;
    size_t count;
} ov_autoplace_texts;

typedef struct {
    const char* key;
    const char* value;
} ov_autoplace_pair;

typedef struct {
    const ov_autoplace_pair* items;
    size_t count;
} ov_autoplace_pairs;

typedef struct {
    const char* device;
    ov_autoplace_pairs properties;
} ov_autoplace_settings;

/* Exclusive upper bound of the integers of an input. */
typedef struct {
    const char* input;
    int64_t high;
} ov_autoplace_bound;

typedef struct {
    const char* input;
    const size_t* sizes;
    size_t rank;
} ov_autoplace_shape;

/* One of the shapes in which a model is called, and how often it comes beside the others. The second
 * dimension of inputs that grow is one more with each time. */
typedef struct {
    const ov_autoplace_shape* shapes;
    size_t shape_count;
    double times;
    ov_autoplace_texts growing;
} ov_autoplace_call;

/* What inputs are filled with. Integers without a bound are 0 or 1. Without calls, all shapes are static. */
typedef struct {
    const ov_autoplace_bound* bounds;
    size_t bound_count;
    uint64_t seed;
    const ov_autoplace_call* calls;
    size_t call_count;
} ov_autoplace_inputs;

typedef struct {
    const char* xml_path;
    const char* weights_path; /* the IR of one Constant: the weights of a model on lanes; or empty */
    const char* device;
    ov_autoplace_pairs properties;
    const ov_autoplace_pairs* affinities; /* of every op by its name, for HETERO; or null */
    ov_autoplace_texts extensions;
    ov_autoplace_inputs inputs;
} ov_autoplace_recipe;

typedef struct {
    size_t subgraphs;        /* that HETERO made, else 1 */
    size_t optimal_requests; /* in flight, for the best rate of the device; 1 where it does not say */
    double compile_seconds;
    ov_autoplace_texts execution_devices;
} ov_autoplace_facts;

/* One node of a compiled model, as the device ran it. */
typedef struct {
    const char* name;
    int subgraph; /* index of HETERO's submodel; 0 on a plain device */
    const char* type;
    const char* exec_type; /* kernel and precision, in the plugin's own words */
    const char* status;    /* EXECUTED, NOT_RUN or OPTIMIZED_OUT */
    ov_autoplace_texts original_names;
    ov_autoplace_texts consumers;
    const char* layout; /* of the first result, like its precision in the plugin's own words */
    const char* precision;
    double seconds; /* mean over every inference, cold ones included; 0 without PERF_COUNT */
} ov_autoplace_node;

/* How a model is run one op after the other, none of which knows of its neighbours. */
typedef struct {
    int evaluate;     /* ops that have one are run by OpenVINO's own reference implementation */
    int compile;      /* others are compiled for the CPU, each alone, in f32, and else refused */
    double seconds;   /* it is given up after so long */
    size_t disturbed; /* so many further runs in which every op's results are rounded at random ... */
    double noise;     /* ... with relative errors of up to this: Monte Carlo arithmetic (Parker, 1997) */
} ov_autoplace_op_by_op;

/* Of the library that is loaded. */
OV_AUTOPLACE_API int ov_autoplace_interface(void);

/* Registers those plugins, which are libraries by device, that are not known yet, and sets each device's
 * properties. */
OV_AUTOPLACE_API int ov_autoplace_profiler_new(ov_autoplace_pairs plugins,
                                               const ov_autoplace_settings* settings, size_t count,
                                               ov_autoplace_profiler** profiler);
OV_AUTOPLACE_API void ov_autoplace_profiler_free(ov_autoplace_profiler* profiler);

OV_AUTOPLACE_API int ov_autoplace_compile(ov_autoplace_profiler* profiler, const ov_autoplace_recipe* recipe,
                                          ov_autoplace_model** model);
OV_AUTOPLACE_API void ov_autoplace_model_free(ov_autoplace_model* model);
OV_AUTOPLACE_API int ov_autoplace_facts_of(ov_autoplace_model* model, ov_autoplace_facts* facts);

/* Seconds per inference, the mean of so many of the first request. With pauses, the machine idles for so long
 * before each, so that threads have gone to sleep and caches are cold, as they are where requests arrive now
 * and then. */
OV_AUTOPLACE_API int ov_autoplace_sample(ov_autoplace_model* model, size_t inferences, int asynchronous,
                                         double pause_seconds, double* seconds);

/* Keeps what the last inference of the first request computed, in a file that output_differences() of the
 * core reads: the number of outputs, and of each the bytes of an element (0: floats), its rank and its sizes,
 * the number of its bytes, all as uint64, and the bytes. */
OV_AUTOPLACE_API int ov_autoplace_save_outputs(ov_autoplace_model* model, const char* path);

OV_AUTOPLACE_API int ov_autoplace_nodes(ov_autoplace_model* model, const ov_autoplace_node** nodes,
                                        size_t* count);

/* When each submodel of the last inference ran, and on which lane: see ov_autoplace_profile. */
OV_AUTOPLACE_API int ov_autoplace_lanes_of(ov_autoplace_model* model, const char** json);

/* The model's i-th request, made with a copy of the first one's inputs where there is none yet. An inference
 * is all calls of a sequence where there are some, of which start leaves the last one under way. */
OV_AUTOPLACE_API int ov_autoplace_request_of(ov_autoplace_model* model, size_t i,
                                             ov_autoplace_request** request);
OV_AUTOPLACE_API int ov_autoplace_infer(ov_autoplace_request* request);
OV_AUTOPLACE_API int ov_autoplace_start(ov_autoplace_request* request);
OV_AUTOPLACE_API int ov_autoplace_wait(ov_autoplace_request* request);
/* `ended` is called by whatever thread ends an inference that was started, with null or with what went wrong.
 * It must not throw. Null takes it away again. */
OV_AUTOPLACE_API int ov_autoplace_on_end(ov_autoplace_request* request,
                                         void (*ended)(void* context, const char* error), void* context);

/* Runs the IR op by op on the inputs that a model gets, and keeps the outputs as ov_autoplace_save_outputs
 * does: those of the undisturbed run in the first path, those of each disturbed one in the next. `check` is
 * called before each op and stops it all by other than 0. */
OV_AUTOPLACE_API int ov_autoplace_run_op_by_op(ov_autoplace_profiler* profiler,
                                               const ov_autoplace_recipe* recipe,
                                               const ov_autoplace_op_by_op* how, ov_autoplace_texts paths,
                                               int (*check)(void* context), void* context);

#ifdef __cplusplus
}
#endif

#endif
