#include "profiler_api.h"

#include <exception>

#include "../last_error.hpp"
#include "profiler.hpp"

using ov_autoplace::Executable;
using ov_autoplace::last_error;
using ov_autoplace::NodeTime;
using ov_autoplace::OpByOp;
using ov_autoplace::Profiler;
using ov_autoplace::StringMap;

namespace {

// Texts in the form in which they are handed out.
struct Texts {
    std::vector<std::string> own;
    std::vector<const char*> items;

    ov_autoplace_texts of(std::vector<std::string> texts) {
        own = std::move(texts);
        items.clear();
        for (const std::string& text : own) items.push_back(text.c_str());
        return {items.data(), items.size()};
    }
};

struct Node {
    NodeTime it;
    Texts original_names, consumers;
    explicit Node(NodeTime node) : it(std::move(node)) {}

    ov_autoplace_node told() {
        return {it.name.c_str(),
                it.subgraph,
                it.type.c_str(),
                it.exec_type.c_str(),
                it.status,
                original_names.of(it.original_names),
                consumers.of(it.consumers),
                it.layout.c_str(),
                it.precision.c_str(),
                it.seconds};
    }
};

struct Stopped {};

}  // namespace

struct ov_autoplace_profiler {
    Profiler it;
};

struct ov_autoplace_request {
    Executable::Request& it;
};

struct ov_autoplace_model {
    std::unique_ptr<Executable> it;
    std::deque<ov_autoplace_request> requests;  // those that were asked for
    Texts execution_devices;
    std::deque<Node> nodes;
    std::vector<ov_autoplace_node> told_nodes;
    std::string lanes;
};

namespace {

// Nothing that is thrown leaves the library: plugins throw types of their own.
template <typename Action>
int answered(Action&& action) {
    try {
        action();
        return OV_AUTOPLACE_OK;
    } catch (const Stopped&) {
        return OV_AUTOPLACE_STOPPED;
    } catch (const std::exception& error) {
        last_error = error.what();
    } catch (...) {
        last_error = "something was thrown that says nothing";
    }
    return OV_AUTOPLACE_FAILED;
}

std::vector<std::string> vector_of(const ov_autoplace_texts& texts) {
    return {texts.items, texts.items + texts.count};
}

StringMap map_of(const ov_autoplace_pairs& pairs) {
    StringMap map;
    for (std::size_t i = 0; i < pairs.count; ++i) map.emplace(pairs.items[i].key, pairs.items[i].value);
    return map;
}

Executable::Inputs inputs_of(const ov_autoplace_inputs& given) {
    Executable::Inputs inputs;
    for (std::size_t i = 0; i < given.bound_count; ++i) {
        inputs.high.emplace(given.bounds[i].input, given.bounds[i].high);
    }
    inputs.seed = given.seed;
    for (std::size_t i = 0; i < given.call_count; ++i) {
        const ov_autoplace_call& call = given.calls[i];
        Executable::Call& made = inputs.calls.emplace_back();
        for (std::size_t j = 0; j < call.shape_count; ++j) {
            const ov_autoplace_shape& shape = call.shapes[j];
            made.shapes[shape.input] = {shape.sizes, shape.sizes + shape.rank};
        }
        made.times = call.times;
        for (const std::string& name : vector_of(call.growing)) made.growing.insert(name);
    }
    return inputs;
}

void add_extensions(Profiler& profiler, const ov_autoplace_recipe& recipe) {
    for (const std::string& extension : vector_of(recipe.extensions)) profiler.add_extension(extension);
}

}  // namespace

int ov_autoplace_interface(void) { return OV_AUTOPLACE_INTERFACE; }

int ov_autoplace_profiler_new(ov_autoplace_pairs plugins, const ov_autoplace_settings* settings, size_t count,
                              ov_autoplace_profiler** profiler) {
    return answered([&] {
        std::vector<std::pair<std::string, std::string>> libraries;
        for (std::size_t i = 0; i < plugins.count; ++i) {
            libraries.emplace_back(plugins.items[i].key, plugins.items[i].value);
        }
        std::map<std::string, StringMap> properties;
        for (std::size_t i = 0; i < count; ++i) {
            properties.emplace(settings[i].device, map_of(settings[i].properties));
        }
        *profiler = new ov_autoplace_profiler{Profiler(libraries, properties)};
    });
}

void ov_autoplace_profiler_free(ov_autoplace_profiler* profiler) { delete profiler; }

int ov_autoplace_compile(ov_autoplace_profiler* profiler, const ov_autoplace_recipe* recipe,
                         ov_autoplace_model** model) {
    return answered([&] {
        add_extensions(profiler->it, *recipe);
        StringMap affinities;
        if (recipe->affinities != nullptr) affinities = map_of(*recipe->affinities);
        auto compiled = profiler->it.compile(recipe->xml_path, recipe->device, map_of(recipe->properties),
                                             recipe->affinities != nullptr ? &affinities : nullptr,
                                             inputs_of(recipe->inputs), recipe->weights_path);
        *model = new ov_autoplace_model{std::move(compiled), {}, {}, {}, {}, {}};
    });
}

void ov_autoplace_model_free(ov_autoplace_model* model) { delete model; }

int ov_autoplace_facts_of(ov_autoplace_model* model, ov_autoplace_facts* facts) {
    return answered([&] {
        const Executable& it = *model->it;
        *facts = {it.subgraphs(), it.optimal_requests(), it.compile_seconds(),
                  model->execution_devices.of(it.execution_devices())};
    });
}

int ov_autoplace_sample(ov_autoplace_model* model, size_t inferences, int asynchronous, double pause_seconds,
                        double* seconds) {
    return answered([&] { *seconds = model->it->sample(inferences, asynchronous != 0, pause_seconds); });
}

int ov_autoplace_save_outputs(ov_autoplace_model* model, const char* path) {
    return answered([&] { model->it->save_outputs(path); });
}

int ov_autoplace_nodes(ov_autoplace_model* model, const ov_autoplace_node** nodes, size_t* count) {
    return answered([&] {
        model->told_nodes.clear();
        model->nodes.clear();
        for (NodeTime& node : model->it->node_times()) {
            model->told_nodes.push_back(model->nodes.emplace_back(std::move(node)).told());
        }
        *nodes = model->told_nodes.data();
        *count = model->told_nodes.size();
    });
}

int ov_autoplace_lanes_of(ov_autoplace_model* model, const char** json) {
    return answered([&] {
        model->lanes = model->it->lane_profile();
        *json = model->lanes.c_str();
    });
}

int ov_autoplace_request_of(ov_autoplace_model* model, size_t i, ov_autoplace_request** request) {
    return answered([&] {
        while (model->requests.size() <= i) {
            model->requests.push_back({model->it->request(model->requests.size())});
        }
        *request = &model->requests[i];
    });
}

int ov_autoplace_infer(ov_autoplace_request* request) {
    return answered([&] { request->it.infer(); });
}

int ov_autoplace_start(ov_autoplace_request* request) {
    return answered([&] { request->it.start(); });
}

int ov_autoplace_wait(ov_autoplace_request* request) {
    return answered([&] { request->it.request().wait(); });
}

int ov_autoplace_on_end(ov_autoplace_request* request, void (*ended)(void* context, const char* error),
                        void* context) {
    return answered([&] {
        request->it.request().set_callback([ended, context](std::exception_ptr thrown) {
            if (ended == nullptr) return;
            const int status = answered([&] {
                if (thrown) std::rethrow_exception(thrown);
            });
            ended(context, status == OV_AUTOPLACE_OK ? nullptr : last_error.c_str());
        });
    });
}

int ov_autoplace_run_op_by_op(ov_autoplace_profiler* profiler, const ov_autoplace_recipe* recipe,
                              const ov_autoplace_op_by_op* how, ov_autoplace_texts paths,
                              int (*check)(void* context), void* context) {
    return answered([&] {
        add_extensions(profiler->it, *recipe);
        const OpByOp op_by_op{how->evaluate != 0, how->compile != 0, how->seconds, how->disturbed,
                              how->noise};
        profiler->it.run_op_by_op(recipe->xml_path, inputs_of(recipe->inputs), op_by_op, vector_of(paths),
                                  [&] {
                                      if (check(context) != 0) throw Stopped();
                                  });
    });
}
