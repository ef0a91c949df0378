#include "ov_autoplace/profiler.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "ov_autoplace/outputs.hpp"

namespace ov_autoplace {
namespace {

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
    std::vector<const char*> result;
    for (const std::string& text : texts) result.push_back(text.c_str());
    return result;
}

template <typename Pairs>
std::vector<ov_autoplace_pair> pairs_of(const Pairs& given) {
    std::vector<ov_autoplace_pair> result;
    for (const auto& [key, value] : given) result.push_back({key.c_str(), value.c_str()});
    return result;
}

// A recipe in the form in which it is handed over; valid as long as the recipe stays.
class PlainRecipe {
public:
    explicit PlainRecipe(const Recipe& recipe)
        : m_properties(pairs_of(recipe.properties)), m_extensions(pointers(recipe.extensions)) {
        if (recipe.affinities != nullptr) m_affinities = pairs_of(*recipe.affinities);
        m_affinity_pairs = {m_affinities.data(), m_affinities.size()};
        for (const auto& [input, high] : recipe.input_high) m_bounds.push_back({input.c_str(), high});
        m_shapes.reserve(recipe.calls.size());
        m_growing.reserve(recipe.calls.size());
        for (const Recipe::Call& call : recipe.calls) {
            auto& shapes = m_shapes.emplace_back();
            for (const auto& [input, sizes] : call.shapes) {
                shapes.push_back({input.c_str(), sizes.data(), sizes.size()});
            }
            auto& growing = m_growing.emplace_back(pointers(call.growing));
            m_calls.push_back({shapes.data(), shapes.size(), call.times, {growing.data(), growing.size()}});
        }
        m_plain.xml_path = recipe.xml_path.c_str();
        m_plain.weights_path = recipe.weights_path.c_str();
        m_plain.device = recipe.device.c_str();
        m_plain.properties = {m_properties.data(), m_properties.size()};
        m_plain.affinities = recipe.affinities != nullptr ? &m_affinity_pairs : nullptr;
        m_plain.extensions = {m_extensions.data(), m_extensions.size()};
        m_plain.inputs = {m_bounds.data(), m_bounds.size(), recipe.seed, m_calls.data(), m_calls.size()};
    }
    PlainRecipe(const PlainRecipe&) = delete;
    PlainRecipe& operator=(const PlainRecipe&) = delete;

    const ov_autoplace_recipe* get() const { return &m_plain; }

private:
    ov_autoplace_recipe m_plain{};
    std::vector<ov_autoplace_pair> m_properties, m_affinities;
    ov_autoplace_pairs m_affinity_pairs{};
    std::vector<const char*> m_extensions;
    std::vector<ov_autoplace_bound> m_bounds;
    std::vector<std::vector<ov_autoplace_shape>> m_shapes;
    std::vector<std::vector<const char*>> m_growing;
    std::vector<ov_autoplace_call> m_calls;
};

std::vector<std::string> vector_of(const ov_autoplace_texts& texts) {
    return {texts.items, texts.items + texts.count};
}

}  // namespace

Executable::Executable(std::shared_ptr<NativeProfiler> profiler, ov_autoplace_model* model)
    : m_profiler(std::move(profiler)), m_model(model, part().model_free) {
    part().check(part().facts_of(m_model.get(), &m_facts));
    m_execution_devices = vector_of(m_facts.execution_devices);
}

Executable::Request Executable::request(std::size_t i) {
    ov_autoplace_request* request = nullptr;
    part().check(part().request_of(m_model.get(), i, &request));
    return {part(), request};
}

double Executable::sample(std::size_t inferences, bool asynchronous) {
    const auto locked = lock();
    double seconds = 0;
    m_has_run = false;
    part().check(part().sample(m_model.get(), inferences, asynchronous ? 1 : 0, 0, &seconds));
    m_has_run = true;
    return seconds;
}

double Executable::sample_after_pauses(std::size_t inferences, double pause_seconds) {
    const auto locked = lock();
    double seconds = 0;
    part().check(part().sample(m_model.get(), inferences, 0, pause_seconds, &seconds));
    return seconds;
}

std::vector<double> Executable::run(std::size_t samples, std::size_t warmup, bool asynchronous,
                                    std::size_t inferences, const Checkpoint& checkpoint) {
    std::vector<double> result;  // grows with the work done, however many samples are asked for
    CheckpointTimer timer;
    const auto check = [&] {
        if (checkpoint && timer.due()) {
            checkpoint();
        }
    };
    for (std::size_t i = 0; i < warmup; ++i) {
        sample(1, asynchronous);
        check();
    }
    while (result.size() < samples) {
        result.push_back(sample(inferences, asynchronous));
        check();
    }
    return result;
}

void Executable::save_outputs(const std::string& path, bool anew) {
    if (anew || !m_has_run) {
        sample(1, false);
    }
    const auto locked = lock();
    part().check(part().save_outputs(m_model.get(), path.c_str()));
}

std::vector<NodeTime> Executable::node_times() {
    const auto locked = lock();
    const ov_autoplace_node* nodes = nullptr;
    std::size_t count = 0;
    part().check(part().nodes(m_model.get(), &nodes, &count));
    std::vector<NodeTime> result;
    for (std::size_t i = 0; i < count; ++i) {
        const ov_autoplace_node& node = nodes[i];
        result.push_back({node.name, node.subgraph, node.type, node.exec_type, node.status,
                          vector_of(node.original_names), vector_of(node.consumers), node.layout,
                          node.precision, node.seconds});
    }
    return result;
}

std::string Executable::lane_profile() {
    const auto locked = lock();
    const char* json = nullptr;
    part().check(part().lanes_of(m_model.get(), &json));
    return json;
}

RaceResult race(const std::vector<std::shared_ptr<Executable>>& executables, const RaceOptions& options,
                const SampleOptions& sampling, const RaceCheckpoint& checkpoint,
                volatile std::int64_t* current) {
    constexpr std::size_t kTrials = 3;
    constexpr double kMostSampleSeconds = 60.0, kMostInferences = 1e9;
    const double least = sampling.min_seconds, pause = sampling.pause_seconds;
    if (!(least >= 0 && least <= kMostSampleSeconds)) {
        throw std::invalid_argument("a sample of a race must last from 0 to 60 seconds");
    }
    if (!(pause >= 0 && pause <= kMostSampleSeconds)) {
        throw std::invalid_argument("a pause of a race must last from 0 to 60 seconds");
    }
    for (std::size_t candidate = 0; candidate < executables.size(); ++candidate) {
        if (executables[candidate] == nullptr) {
            throw std::invalid_argument("candidate " + std::to_string(candidate) + " of the race is None");
        }
    }
    std::vector<std::size_t> inferences(executables.size(), 0);
    const auto sampler = [&](std::size_t candidate) {
        Executable& executable = *executables[candidate];
        if (current != nullptr) {
            *current = static_cast<std::int64_t>(candidate);
        }
        if (inferences[candidate] == 0) {
            const std::vector<double> trials =
                executable.run(kTrials, executable.has_run() ? 0 : 1, false, 1, {});
            const double shortest = *std::min_element(trials.begin(), trials.end());
            inferences[candidate] =
                static_cast<std::size_t>(std::clamp(std::ceil(least / shortest), 1.0, kMostInferences));
        }
        if (pause > 0) {
            return executable.sample_after_pauses(kPausedInferences, pause);
        }
        return executable.run(1, 0, false, inferences[candidate], {}).front();
    };
    return race(executables.size(), sampler, options, checkpoint);
}

Profiler::Profiler(const std::vector<std::string>& libraries,
                   const std::vector<std::pair<std::string, std::string>>& plugins,
                   const std::map<std::string, StringMap>& device_properties)
    : m_native(std::make_shared<NativeProfiler>(libraries)) {
    const auto plain_plugins = pairs_of(plugins);
    std::vector<std::vector<ov_autoplace_pair>> properties;
    std::vector<ov_autoplace_settings> settings;
    for (const auto& [device, own] : device_properties) {
        const auto& plain = properties.emplace_back(pairs_of(own));
        settings.push_back({device.c_str(), {plain.data(), plain.size()}});
    }
    const NativePart& part = m_native->part;
    part.check(part.profiler_new({plain_plugins.data(), plain_plugins.size()}, settings.data(),
                                 settings.size(), &m_native->profiler));
}

std::shared_ptr<Executable> Profiler::compile(const Recipe& recipe) {
    const NativePart& part = m_native->part;
    ov_autoplace_model* model = nullptr;
    part.check(part.compile(m_native->profiler, PlainRecipe(recipe).get(), &model));
    return std::make_shared<Executable>(m_native, model);
}

std::vector<double> Profiler::save_op_by_op(const Recipe& recipe, const std::string& path, const OpByOp& how,
                                            double smallest, const Checkpoint& checkpoint) {
    std::vector<std::string> paths{path};
    for (std::size_t run = 0; run < how.disturbed; ++run) {
        paths.push_back(path + ".disturbed" + std::to_string(run));
    }
    struct Disturbed {
        const std::vector<std::string>& paths;
        ~Disturbed() {
            for (std::size_t run = 1; run < paths.size(); ++run) std::remove(paths[run].c_str());
        }
    } const removed_at_the_end{paths};

    struct Checked {
        const Checkpoint& checkpoint;
        CheckpointTimer timer;
        std::exception_ptr thrown;
    } checked{checkpoint, {}, nullptr};
    const auto check = [](void* context) {
        auto& state = *static_cast<Checked*>(context);
        try {
            if (state.checkpoint && state.timer.due()) state.checkpoint();
            return 0;
        } catch (...) {
            state.thrown = std::current_exception();
            return 1;
        }
    };
    const auto plain_paths = pointers(paths);
    const ov_autoplace_op_by_op plain{how.evaluate ? 1 : 0, how.compile ? 1 : 0, how.seconds, how.disturbed,
                                      how.noise};
    const NativePart& part = m_native->part;
    const int status = part.run_op_by_op(m_native->profiler, PlainRecipe(recipe).get(), &plain,
                                         {plain_paths.data(), plain_paths.size()}, check, &checked);
    if (status == OV_AUTOPLACE_STOPPED) std::rethrow_exception(checked.thrown);
    part.check(status);

    std::vector<double> most = output_differences(path, path, smallest);  // a zero for each output
    for (std::size_t run = 1; run < paths.size(); ++run) {
        const auto found = output_differences(paths[run], path, smallest);
        for (std::size_t i = 0; i < found.size(); ++i) most[i] = std::max(most[i], found[i]);
    }
    return most;
}

}  // namespace ov_autoplace
