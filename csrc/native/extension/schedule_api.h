/* The op autoplace::Schedule, and what a program can ask about it through plain C.
 *
 * The op (IR: type="Schedule" version="autoplace") runs submodels at once on lanes and devices. Its inputs
 * are `data_inputs` tensors, then for each submodel two u8 constants: the text of its IR and its weights (at
 * least one byte). All else is attributes:
 *
 * - `format` (int): 1
 * - `data_inputs` (int): how many inputs are data
 * - `lanes` (strings): device of each lane. Lanes of equal device and properties are copies: a submodel
 *   of one of them may run on any
 * - `lane_properties` (strings): of each lane, KEY=VALUE joined by ';' and passed to compile_model. In an IR
 *   none is ';', because OpenVINO's reader drops empty texts. Where a submodel cannot be compiled with a
 *   CACHE_DIR, it is compiled without
 * - `submodels` (strings): a name for each submodel; they are in topological order
 * - `lane_of` (ints): lane of each submodel
 * - `rank` (ints): of its submodels that are ready, a lane begins that of the smallest rank
 * - `sources` (ints): for each submodel its number of inputs, then for each of them a pair: -1 and an
 *   index of a data input, or an earlier submodel and its output
 * - `results` (ints): such a pair for each output of the op
 * - `output_types` (strings): element types of the outputs
 * - `input_shapes`, `output_shapes` (ints): for each data input and each output its rank (-1: any), then its
 *   dimensions (-1: any)
 *
 * All strings are percent-encoded, a property's key and value each before they are joined. Data inputs and
 * outputs are f32, i32, i8 or u8, because OpenVINO's CPU plugin hands other types to an op in a
 * converted form and does not convert what it writes. What does not fit is refused when the model is read or
 * reshaped, in one sentence; so is a data input that is more general than `input_shapes`.
 *
 * Submodels are compiled when the model that has the op is compiled or imported, in a Core of the library's
 * own, and not when a file is read; what does not compile is an error of compile_model. Models that are
 * compiled from the same ov::Model at the same time share them. `lane_properties` decide on everything
 * inside (threads, precision, CACHE_DIR, PERF_COUNT); properties of the outer compile_model concern what is
 * outside. Of these, one thread in one stream is to be avoided, as OpenVINO then loses exceptions of
 * synchronous inferences, and may crash after one: INFERENCE_NUM_THREADS=2, NUM_STREAMS=1 and
 * ENABLE_CPU_PINNING=NO cost no more. The same holds for lanes with submodels that can fail while they run:
 * INFERENCE_NUM_THREADS=1 with NUM_STREAMS=0 keeps the exceptions of one thread.
 *
 * A submodel that fails ends its run with the exception "submodel NAME on DEVICE: reason". */
#ifndef OV_AUTOPLACE_SCHEDULE_API_H
#define OV_AUTOPLACE_SCHEDULE_API_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OV_AUTOPLACE_API __attribute__((visibility("default")))

/* Makes a plugin known to the library's own Core, which compiles submodels; a device that a new Core knows
 * anyway stays what it is. Returns 0; or 1 where the name has been registered for another library, or the
 * Core that is in use refuses it, and ov_autoplace_last_error() says why. */
OV_AUTOPLACE_API int ov_autoplace_register_plugin(const char* name, const char* library);

/* What is known of the op of this friendly name, as JSON in UTF-8:
 *
 *   {"runs": 3, "wakes": 1, "helped": 2, "submodels": [
 *     {"name": "a", "device": "CPU", "lane": 0, "start_us": 0.0, "finish_us": 15.2, "nodes": [
 *       {"name": "Relu_3", "type": "Relu", "exec_type": "jit_avx512_f32", "status": "EXECUTED",
 *        "real_us": 3, "cpu_us": 3}, ...]}, ...]}
 *
 * `runs` that succeeded, times that a thread was woken or made (`wakes`), and submodels that others than the
 * calling thread ran (`helped`), since the op was compiled. `submodels` are those of the run that ended last,
 * with the lane that each one ran on (not necessarily that of the plan) and when, from the beginning of the
 * first; empty before the first run, and while another run uses what the last one left. `nodes` have
 * times where the lane's properties have PERF_COUNT.
 *
 * Returns the length of the text with its ending zero, and writes it if `size` is not less. 0: no op of this
 * name is compiled, or there is no memory for the answer. Of several ops of one name, it is the one that was
 * compiled last; make names unique. */
OV_AUTOPLACE_API size_t ov_autoplace_profile(const char* op, char* buffer, size_t size);

/* The lanes of the op of this friendly name, in their order, with what the first submodel of each tells of
 * how it was compiled, all values as text; none for a lane without submodels:
 *
 *   [{"device": "CPU", "properties": {"INFERENCE_NUM_THREADS": "1", ...}}, ...]
 *
 * What it returns and writes is as for ov_autoplace_profile. */
OV_AUTOPLACE_API size_t ov_autoplace_lanes(const char* op, char* buffer, size_t size);

/* The sentence of this thread's last call that failed; it stays valid until the next one. */
OV_AUTOPLACE_API const char* ov_autoplace_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
