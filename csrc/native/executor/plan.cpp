#include "plan.hpp"

#include "refuse.hpp"

namespace ov_autoplace::executor {
namespace {

// `before`: submodels from here on may not be read.
void check_source(const Plan& plan, const Source& source, size_t before, const std::string& reader) {
    if (source.submodel == Source::data) {
        if (source.port < plan.data_inputs) return;
        refuse("a schedule's ", reader, " reads data input ", source.port, ", but there are ",
               plan.data_inputs);
    }
    if (source.submodel < 0 || static_cast<size_t>(source.submodel) >= plan.submodels.size()) {
        refuse("a schedule's ", reader, " reads submodel ", source.submodel, ", but there are ",
               plan.submodels.size());
    }
    if (static_cast<size_t>(source.submodel) >= before) {
        refuse("a schedule's ", reader, " reads submodel ", source.submodel,
               ", which does not come before it; submodels are listed in topological order");
    }
}

}  // namespace

void check(const Plan& plan) {
    if (plan.lanes.empty()) refuse("a schedule needs a lane, and has none");
    if (plan.submodels.empty()) refuse("a schedule needs a submodel, and has none");
    for (const auto& lane : plan.lanes) {
        if (lane.device.empty()) refuse("a schedule has a lane without a device");
    }
    for (size_t i = 0; i < plan.submodels.size(); ++i) {
        const auto& submodel = plan.submodels[i];
        const auto reader = "submodel '" + submodel.name + "'";
        if (submodel.lane >= plan.lanes.size()) {
            refuse("a schedule's ", reader, " is on lane ", submodel.lane, ", but there are ",
                   plan.lanes.size());
        }
        for (const auto& source : submodel.inputs) check_source(plan, source, i, reader);
    }
    if (plan.result_shapes.size() != plan.results.size()) {
        refuse("a schedule has ", plan.results.size(), " outputs and ", plan.result_shapes.size(),
               " shapes of them");
    }
    for (const auto& source : plan.results) {
        check_source(plan, source, plan.submodels.size(), "output");
    }
}

std::vector<size_t> first_copies(const std::vector<Lane>& lanes) {
    std::vector<size_t> first;
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
        size_t other = 0;
        while (lanes[other].device != lanes[lane].device || lanes[other].properties != lanes[lane].properties)
            ++other;
        first.push_back(other);
    }
    return first;
}

}  // namespace ov_autoplace::executor
