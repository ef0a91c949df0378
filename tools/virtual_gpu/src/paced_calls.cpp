#include "paced_calls.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "driver.hpp"
#include "options.hpp"
#include "paced_memory.hpp"
#include "timeline.hpp"

namespace virtual_gpu {
namespace {

using cl_flags = cl_ulong;

template <typename Function>
Function real(const char* name) {
    return reinterpret_cast<Function>(driver_entry(name));
}

// A call may be done after it has returned, so what its arguments point to is kept: memory objects by a
// reference, small arrays by a copy. Each turns into the argument that it stands for.
class KeptMemory {
public:
    explicit KeptMemory(cl_mem memory) {
        static const auto retain = real<cl_int (*)(cl_mem)>("clRetainMemObject");
        static const auto release = real<cl_int (*)(cl_mem)>("clReleaseMemObject");
        if (retain(memory) == CL_SUCCESS) {
            kept_ = std::shared_ptr<OpenclMemory>(memory, release);
        }
    }
    operator cl_mem() const { return kept_.get(); }

private:
    std::shared_ptr<OpenclMemory> kept_;
};

class KeptBytes {
public:
    KeptBytes(const void* bytes, std::size_t size)
        : bytes_(static_cast<const unsigned char*>(bytes), static_cast<const unsigned char*>(bytes) + size) {}
    operator const void*() const { return bytes_.data(); }
    std::size_t size() const { return bytes_.size(); }

private:
    std::vector<unsigned char> bytes_;
};

class KeptTriple {
public:
    explicit KeptTriple(const std::size_t* values) : values_{values[0], values[1], values[2]} {}
    operator const std::size_t*() const { return values_.data(); }

private:
    std::array<std::size_t, 3> values_;
};

template <typename Call>
Outcome timed(const Call& call) {
    const Nanoseconds start = now();
    const cl_int error = call();
    return {error, now() - start};
}

// Enqueues what the runtime's call does with these arguments; it has done it when the work returns.
template <typename Function, typename... Arguments>
cl_int enqueue_call(Function call, cl_command_queue queue, cl_uint type, WaitList waits, bool blocking,
                    cl_event* event, Arguments... arguments) {
    return enqueue(queue, type, waits, blocking, event, [=](bool) {
        return timed([&] {
            const cl_int error = call(queue, arguments..., 0, nullptr, nullptr);
            return error ? error : driver().finish(queue);
        });
    });
}

cl_int read_buffer(cl_command_queue queue, cl_mem buffer, cl_uint blocking, std::size_t offset,
                   std::size_t size, void* to, cl_uint count, const cl_event* events, cl_event* event) {
    static const auto call = real<decltype(&read_buffer)>("clEnqueueReadBuffer");
    return enqueue_call(call, queue, CL_COMMAND_READ_BUFFER, {count, events}, blocking, event,
                        KeptMemory(buffer), 0, offset, size, to);
}

cl_int write_buffer(cl_command_queue queue, cl_mem buffer, cl_uint blocking, std::size_t offset,
                    std::size_t size, const void* from, cl_uint count, const cl_event* events,
                    cl_event* event) {
    static const auto call = real<decltype(&write_buffer)>("clEnqueueWriteBuffer");
    return enqueue_call(call, queue, CL_COMMAND_WRITE_BUFFER, {count, events}, blocking, event,
                        KeptMemory(buffer), 0, offset, size, from);
}

cl_int read_image(cl_command_queue queue, cl_mem image, cl_uint blocking, const std::size_t* origin,
                  const std::size_t* region, std::size_t row, std::size_t slice, void* to, cl_uint count,
                  const cl_event* events, cl_event* event) {
    static const auto call = real<decltype(&read_image)>("clEnqueueReadImage");
    return enqueue_call(call, queue, CL_COMMAND_READ_IMAGE, {count, events}, blocking, event,
                        KeptMemory(image), 0, KeptTriple(origin), KeptTriple(region), row, slice, to);
}

cl_int write_image(cl_command_queue queue, cl_mem image, cl_uint blocking, const std::size_t* origin,
                   const std::size_t* region, std::size_t row, std::size_t slice, const void* from,
                   cl_uint count, const cl_event* events, cl_event* event) {
    static const auto call = real<decltype(&write_image)>("clEnqueueWriteImage");
    return enqueue_call(call, queue, CL_COMMAND_WRITE_IMAGE, {count, events}, blocking, event,
                        KeptMemory(image), 0, KeptTriple(origin), KeptTriple(region), row, slice, from);
}

cl_int copy_buffer(cl_command_queue queue, cl_mem from, cl_mem to, std::size_t from_offset,
                   std::size_t to_offset, std::size_t size, cl_uint count, const cl_event* events,
                   cl_event* event) {
    static const auto call = real<decltype(&copy_buffer)>("clEnqueueCopyBuffer");
    return enqueue_call(call, queue, CL_COMMAND_COPY_BUFFER, {count, events}, false, event, KeptMemory(from),
                        KeptMemory(to), from_offset, to_offset, size);
}

cl_int copy_image(cl_command_queue queue, cl_mem from, cl_mem to, const std::size_t* from_origin,
                  const std::size_t* to_origin, const std::size_t* region, cl_uint count,
                  const cl_event* events, cl_event* event) {
    static const auto call = real<decltype(&copy_image)>("clEnqueueCopyImage");
    return enqueue_call(call, queue, CL_COMMAND_COPY_IMAGE, {count, events}, false, event, KeptMemory(from),
                        KeptMemory(to), KeptTriple(from_origin), KeptTriple(to_origin), KeptTriple(region));
}

cl_int fill_buffer(cl_command_queue queue, cl_mem buffer, const void* pattern, std::size_t pattern_size,
                   std::size_t offset, std::size_t size, cl_uint count, const cl_event* events,
                   cl_event* event) {
    static const auto call = real<decltype(&fill_buffer)>("clEnqueueFillBuffer");
    return enqueue_call(call, queue, CL_COMMAND_FILL_BUFFER, {count, events}, false, event,
                        KeptMemory(buffer), KeptBytes(pattern, pattern_size), pattern_size, offset, size);
}

cl_int fill_image(cl_command_queue queue, cl_mem image, const void* colour, const std::size_t* origin,
                  const std::size_t* region, cl_uint count, const cl_event* events, cl_event* event) {
    static const auto call = real<decltype(&fill_image)>("clEnqueueFillImage");
    return enqueue_call(call, queue, CL_COMMAND_FILL_IMAGE, {count, events}, false, event, KeptMemory(image),
                        KeptBytes(colour, 16), KeptTriple(origin), KeptTriple(region));
}

// The address is wanted at once. It is where the memory is: the "device" works on the host's.
template <typename Map>
void* mapped(cl_command_queue queue, cl_uint type, WaitList waits, bool blocking, cl_event* event,
             cl_int* error, const Map& map) {
    cl_int code = CL_SUCCESS;
    void* address = nullptr;
    const Outcome outcome = timed([&] {
        address = map(&code);
        return code;
    });
    if (!code) {
        code = enqueue(queue, type, waits, blocking, event, [=](bool) { return outcome; });
    }
    if (error) {
        *error = code;
    }
    return code ? nullptr : address;
}

void* map_buffer(cl_command_queue queue, cl_mem buffer, cl_uint blocking, cl_flags flags, std::size_t offset,
                 std::size_t size, cl_uint count, const cl_event* events, cl_event* event, cl_int* error) {
    static const auto call = real<decltype(&map_buffer)>("clEnqueueMapBuffer");
    return mapped(queue, CL_COMMAND_MAP_BUFFER, {count, events}, blocking, event, error, [&](cl_int* code) {
        return call(queue, buffer, CL_TRUE, flags, offset, size, 0, nullptr, nullptr, code);
    });
}

void* map_image(cl_command_queue queue, cl_mem image, cl_uint blocking, cl_flags flags,
                const std::size_t* origin, const std::size_t* region, std::size_t* row, std::size_t* slice,
                cl_uint count, const cl_event* events, cl_event* event, cl_int* error) {
    static const auto call = real<decltype(&map_image)>("clEnqueueMapImage");
    return mapped(queue, CL_COMMAND_MAP_IMAGE, {count, events}, blocking, event, error, [&](cl_int* code) {
        return call(queue, image, CL_TRUE, flags, origin, region, row, slice, 0, nullptr, nullptr, code);
    });
}

cl_int unmap(cl_command_queue queue, cl_mem memory, void* address, cl_uint count, const cl_event* events,
             cl_event* event) {
    static const auto call = real<decltype(&unmap)>("clEnqueueUnmapMemObject");
    return enqueue_call(call, queue, CL_COMMAND_UNMAP_MEM_OBJECT, {count, events}, false, event,
                        KeptMemory(memory), address);
}

cl_int marker(cl_command_queue queue, cl_uint count, const cl_event* events, cl_event* event) {
    return enqueue(queue, CL_COMMAND_MARKER, {count, events}, false, event, {});
}

cl_int barrier(cl_command_queue queue, cl_uint count, const cl_event* events, cl_event* event) {
    return enqueue(queue, CL_COMMAND_BARRIER, {count, events}, false, event, {});
}

cl_int flush(cl_command_queue) { return CL_SUCCESS; }

cl_event user_event(cl_context context, cl_int* error) {
    if (error) {
        *error = CL_SUCCESS;
    }
    return create_user_event(context);
}

cl_int wait_for_events(cl_uint count, const cl_event* events) {
    return count && events ? wait_for({count, events}) : CL_INVALID_VALUE;
}

// Unified memory is the host's, whatever kind it says it is.
cl_int copy_memory(cl_command_queue queue, cl_uint blocking, void* to, const void* from, std::size_t size,
                   cl_uint count, const cl_event* events, cl_event* event) {
    return enqueue(queue, CL_COMMAND_MEMCPY_INTEL, {count, events}, blocking, event, [=](bool) {
        return timed([&] {
            std::memmove(to, from, size);
            return CL_SUCCESS;
        });
    });
}

cl_int fill_memory(cl_command_queue queue, void* to, const void* pattern, std::size_t pattern_size,
                   std::size_t size, cl_uint count, const cl_event* events, cl_event* event) {
    const KeptBytes kept(pattern, pattern_size);
    if (!pattern_size || size % pattern_size) {
        return CL_INVALID_VALUE;
    }
    return enqueue(queue, CL_COMMAND_MEMFILL_INTEL, {count, events}, false, event, [=](bool) {
        return timed([&] {
            for (std::size_t at = 0; at < size; at += kept.size()) {
                std::memcpy(static_cast<char*>(to) + at, kept, kept.size());
            }
            return CL_SUCCESS;
        });
    });
}

template <typename Function>
void* address(Function* function) {
    return reinterpret_cast<void*>(function);
}

}  // namespace

void* paced_entry(const char* name) {
    static const std::map<std::string, void*> entries = {
        {"clCreateBuffer", address(create_zeroed_buffer)},
        {"clCreateUserEvent", address(user_event)},
        {"clEnqueueBarrierWithWaitList", address(barrier)},
        {"clEnqueueCopyBuffer", address(copy_buffer)},
        {"clEnqueueCopyImage", address(copy_image)},
        {"clEnqueueFillBuffer", address(fill_buffer)},
        {"clEnqueueFillImage", address(fill_image)},
        {"clEnqueueMapBuffer", address(map_buffer)},
        {"clEnqueueMapImage", address(map_image)},
        {"clEnqueueMarkerWithWaitList", address(marker)},
        {"clEnqueueReadBuffer", address(read_buffer)},
        {"clEnqueueReadImage", address(read_image)},
        {"clEnqueueUnmapMemObject", address(unmap)},
        {"clEnqueueWriteBuffer", address(write_buffer)},
        {"clEnqueueWriteImage", address(write_image)},
        {"clFinish", address(finish)},
        {"clFlush", address(flush)},
        {"clGetEventInfo", address(event_info)},
        {"clGetEventProfilingInfo", address(profiling_info)},
        {"clReleaseCommandQueue", address(release_queue)},
        {"clReleaseEvent", address(release_event)},
        {"clRetainEvent", address(retain_event)},
        {"clSetEventCallback", address(set_callback)},
        {"clSetUserEventStatus", address(set_user_status)},
        {"clWaitForEvents", address(wait_for_events)},
    };
    const auto found = entries.find(name);
    return found == entries.end() ? nullptr : found->second;
}

void* paced_extension(cl_platform_id platform, const char* name) {
    const std::string asked = name;
    void* const own = driver().extension_address(platform, name);
    if (!own) {
        return nullptr;
    }
    if (asked == "clEnqueueMemcpyINTEL") {
        return address(copy_memory);
    }
    if (asked == "clEnqueueMemFillINTEL") {
        return address(fill_memory);
    }
    if (void* const allocation = zeroing_allocation(name, own)) {
        return allocation;
    }
    return asked.compare(0, 9, "clEnqueue") == 0 ? nullptr : own;  // none may pass by our queues
}

cl_int launch_paced(cl_command_queue queue, cl_kernel kernel, cl_uint count, const cl_event* events,
                    cl_event* event, const std::function<cl_int()>& launch) {
    static std::mutex& one_at_a_time = *new std::mutex;
    return enqueue(queue, CL_COMMAND_NDRANGE_KERNEL, {count, events}, false, event,
                   [&, name = kernel_name(kernel)](bool late) {
                       Nanoseconds time = 0;
                       if (paced_time(name, late, time)) {
                           if (options().debug >= 3) {
                               std::fprintf(stderr, "virtual GPU: pace %s for %g us\n", name.c_str(),
                                            static_cast<double>(time) / 1000);
                           }
                           return Outcome{CL_SUCCESS, time};
                       }
                       // `launch` is still there, and the kernel's arguments are those of this launch: it is
                       // not late.
                       const std::lock_guard<std::mutex> guard(one_at_a_time);
                       const Outcome outcome = timed([&] {
                           const cl_int error = launch();
                           return error ? error : driver().finish(queue);
                       });
                       if (!outcome.error) {
                           note_run(name, outcome.time);
                       }
                       return outcome;
                   });
}

cl_int launch_recorded(cl_command_queue queue, cl_kernel kernel, const std::function<cl_int()>& launch) {
    driver().finish(queue);
    const Outcome outcome = timed([&] {
        const cl_int error = launch();
        return error ? error : driver().finish(queue);
    });
    if (!outcome.error) {
        note_run(kernel_name(kernel), outcome.time);
    }
    return outcome.error;
}

}  // namespace virtual_gpu
