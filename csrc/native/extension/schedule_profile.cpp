#include "schedule_profile.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <openvino/runtime/properties.hpp>
#include <sstream>

namespace ov_autoplace {
namespace {

struct Known {
    std::mutex mutex;
    std::map<std::string, std::weak_ptr<executor::Executor>> executors;
};

Known& known() {
    static auto* const the_one = new Known;
    return *the_one;
}

std::string quoted(const std::string& text) {
    std::string json = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            json += '\\';
            json += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char escaped[8];
            std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(c));
            json += escaped;
        } else {
            json += c;
        }
    }
    return json + "\"";
}

const char* status_of(ov::ProfilingInfo::Status status) {
    switch (status) {
        case ov::ProfilingInfo::Status::EXECUTED:
            return "EXECUTED";
        case ov::ProfilingInfo::Status::OPTIMIZED_OUT:
            return "OPTIMIZED_OUT";
        default:
            return "NOT_RUN";
    }
}

std::string nodes_of(const executor::Context& context, size_t submodel) {
    std::vector<ov::ProfilingInfo> nodes;
    try {
        nodes = context.profile(submodel);
    } catch (const std::exception&) {
        // Not every plugin profiles, and none where PERF_COUNT is not set.
    }
    std::ostringstream json;
    for (size_t i = 0; i < nodes.size(); ++i) {
        const auto& node = nodes[i];
        json << (i ? ", " : "") << "{\"name\": " << quoted(node.node_name)
             << ", \"type\": " << quoted(node.node_type) << ", \"exec_type\": " << quoted(node.exec_type)
             << ", \"status\": \"" << status_of(node.status) << "\", \"real_us\": " << node.real_time.count()
             << ", \"cpu_us\": " << node.cpu_time.count() << "}";
    }
    return "[" + json.str() + "]";
}

std::string run_of(const executor::Plan& plan, const executor::Context& context) {
    auto first = executor::Clock::time_point::max();
    for (size_t i = 0; i < plan.submodels.size(); ++i) first = std::min(first, context.stay(i).start);
    const auto us = [&](executor::Clock::time_point moment) {
        return std::chrono::duration<double, std::micro>(moment - first).count();
    };
    std::ostringstream json;
    json << std::fixed;
    for (size_t i = 0; i < plan.submodels.size(); ++i) {
        const auto& stay = context.stay(i);
        const auto& lane = plan.lanes[plan.submodels[i].lane];
        json << (i ? ", " : "") << "{\"name\": " << quoted(plan.submodels[i].name)
             << ", \"device\": " << quoted(lane.device) << ", \"lane\": " << stay.lane
             << ", \"start_us\": " << us(stay.start) << ", \"finish_us\": " << us(stay.finish)
             << ", \"nodes\": " << nodes_of(context, i) << "}";
    }
    return json.str();
}

// What a compiled model tells of how it was compiled for a lane. Some plugins list what they do not tell.
std::string properties_of(const executor::Lane& lane, const ov::CompiledModel& model) {
    std::ostringstream json;
    for (const auto& name : model.get_property(ov::supported_properties)) {
        try {
            auto value = model.get_property(name).as<std::string>();
            if (name == ov::inference_num_threads.name() && value == "0") {
                // A CPU that runs in the calling thread says so of itself, however many threads it was given.
                const auto given = std::find_if(lane.properties.begin(), lane.properties.end(),
                                                [&](const auto& property) { return property.first == name; });
                if (given != lane.properties.end()) value = given->second;
            }
            json << (json.tellp() > 0 ? ", " : "") << quoted(name) << ": " << quoted(value);
        } catch (const std::exception&) {
            continue;
        }
    }
    return "{" + json.str() + "}";
}

std::shared_ptr<executor::Executor> executor_of(const std::string& op) {
    auto& all = known();
    const std::lock_guard lock(all.mutex);
    const auto found = all.executors.find(op);
    return found == all.executors.end() ? nullptr : found->second.lock();
}

}  // namespace

void remember(const std::string& op, const std::shared_ptr<executor::Executor>& executor) {
    auto& all = known();
    const std::lock_guard lock(all.mutex);
    for (auto it = all.executors.begin(); it != all.executors.end();) {
        it = it->second.expired() ? all.executors.erase(it) : std::next(it);
    }
    all.executors[op] = executor;
}

std::string profile_of(const std::string& op) {
    const auto executor = executor_of(op);
    if (!executor) return "";
    auto& pool = executor->pool();
    std::string submodels;
    pool.look_at_last(
        [&](const executor::Context& context) { submodels = run_of(executor->plan(), context); });
    const auto counters = pool.counters();
    std::ostringstream json;
    json << "{\"runs\": " << counters.runs << ", \"wakes\": " << counters.wakes
         << ", \"helped\": " << counters.helped << ", \"submodels\": [" << submodels << "]}";
    return json.str();
}

std::string lanes_of(const std::string& op) {
    const auto executor = executor_of(op);
    if (!executor) return "";
    const auto& plan = executor->plan();
    std::ostringstream json;
    for (size_t lane = 0; lane < plan.lanes.size(); ++lane) {
        std::string properties = "{}";
        for (size_t i = 0; i < plan.submodels.size(); ++i) {
            if (plan.submodels[i].lane != lane) continue;
            properties = properties_of(plan.lanes[lane], executor->model(i));
            break;
        }
        json << (lane ? ", " : "") << "{\"device\": " << quoted(plan.lanes[lane].device)
             << ", \"properties\": " << properties << "}";
    }
    return "[" + json.str() + "]";
}

}  // namespace ov_autoplace
