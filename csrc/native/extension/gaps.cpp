#include "gaps.hpp"

#include <algorithm>
#include <openvino/op/util/op_types.hpp>
#include <openvino/op/util/shape_of_base.hpp>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "cached.hpp"
#include "follower.hpp"
#include "marks.hpp"

namespace ov_autoplace {
namespace {

// Whether HETERO can hand this tensor from one submodel to another: it sizes the tensor by the lower bounds
// of dynamic dimensions and fails where one is not zero.
bool can_cross(const ov::Output<const ov::Node>& output) {
    const auto& shape = output.get_partial_shape();
    if (shape.rank().is_dynamic()) return true;
    return std::all_of(shape.begin(), shape.end(),
                       [](const auto& size) { return size.is_static() || size.get_min_length() == 0; });
}

// Ops of which every input but the first says which shape comes out.
bool takes_a_shape(const ov::Input<ov::Node>& input) {
    static const std::set<std::string_view> types = {
        "Broadcast", "Interpolate",  "OneHot", "Pad",       "Reshape", "Slice",         "Split",
        "Squeeze",   "StridedSlice", "Tile",   "Unsqueeze", "TopK",    "VariadicSplit",
    };
    return input.get_index() > 0 && types.count(input.get_node()->get_type_name()) != 0;
}

// New ops that hang together. Some may have got an affinity before, here or from a transformation.
class Region {
public:
    // `compiles`: the model is being cloned, which is how compiling it begins. `reader`, where given, counts
    // as an op of `device` and is no way to other ops.
    explicit Region(bool compiles, const ov::Node* reader = nullptr, std::string device = {})
        : m_compiles(compiles), m_reader(reader), m_device(std::move(device)) {}

    void reach_around(const ov::Node& start) {
        look_after(start);
        reach_before(start);
    }

    void reach_before(const ov::Node& start) {
        look_before(start);
        for (size_t i = 0; i < m_found.size(); ++i) {
            look_before(*m_found[i]);
            look_after(*m_found[i]);
        }
    }

    void reach_after(const ov::Node& start) {
        look_only_after(start);
        for (size_t i = 0; i < m_found.size(); ++i) look_only_after(*m_found[i]);
    }

    void fill() {
        for (auto* op : m_found) sort(op);
        for (auto op = m_order.rbegin(); op != m_order.rend(); ++op) m_shape_ops[*op] = computes_shape(**op);
        for (auto* op : m_order) m_constants[op] = is_fixed(*op);
        for (auto* op : m_order) {
            if (!m_constants[op] && !m_shape_ops[op]) take(*op, of_producer(*op));
        }
        // What is left asks its readers, and where there are none with a device, whoever is near.
        for (bool changed = true; changed;) {
            changed = false;
            for (auto op = m_order.rbegin(); op != m_order.rend(); ++op)
                changed |= take(**op, of_reader(**op));
            for (auto* op : m_order) changed |= take(*op, of_producer(*op));
        }
    }

    // Computes what is constant. HETERO would cut such a computation off the op that reads it where its
    // device's part is cut elsewhere, and shapes that are handed over are not known when the parts are
    // compiled.
    void fold() {
        for (auto* op : m_order) {
            if (!m_constants[op] || ov::op::util::is_constant(op) || !FollowerBase::was_added(*op)) continue;
            ov::OutputVector values(op->get_output_size());
            if (!op->constant_fold(values, op->input_values())) continue;
            for (size_t i = 0; i < values.size(); ++i) {
                auto& value = *values[i].get_node();
                value.set_friendly_name(op->get_friendly_name() + (i == 0 ? "" : "." + std::to_string(i)));
                value.get_rt_info() = op->get_rt_info();
                op->output(i).replace(values[i]);
            }
        }
    }

private:
    // m_found grows while it is walked.
    void visit(ov::Node* op) {
        if (op == m_reader || m_members.count(op) != 0) return;
        const bool is_new = FollowerBase::is_new(*op);
        mark(*op);
        if (!is_new) return;
        // Followers sign themselves.
        if (m_compiles && is_annotated(*op)) sign(*op);
        m_members.insert(op);
        m_found.push_back(op);
    }

    void look_before(const ov::Node& op) {
        for (size_t i = 0; i < op.get_input_size(); ++i) visit(op.get_input_node_ptr(i));
    }

    void look_after(const ov::Node& op) {
        for (const auto& output : op.outputs()) {
            for (const auto& target : output.get_target_inputs()) visit(target.get_node());
        }
    }

    void look_only_after(const ov::Node& op) {
        for (const auto& output : op.outputs()) {
            for (const auto& target : output.get_target_inputs()) {
                auto* reader = target.get_node();
                visit(reader);
                for (size_t i = target.get_index() + 1; i < reader->get_input_size(); ++i) {
                    auto* producer = reader->get_input_node_ptr(i);
                    if (ov::op::util::is_constant(producer)) visit(producer);
                }
            }
        }
    }

    // Producers first. Chains can be long, so there is no recursion.
    void sort(ov::Node* last) {
        std::vector<std::pair<ov::Node*, size_t>> stack{{last, 0}};
        if (!m_sorted.insert(last).second) return;
        while (!stack.empty()) {
            auto& [op, next] = stack.back();
            if (next == op->get_input_size()) {
                m_order.push_back(op);
                stack.pop_back();
                continue;
            }
            auto* producer = op->get_input_node_ptr(next++);
            if (m_members.count(producer) != 0 && m_sorted.insert(producer).second)
                stack.emplace_back(producer, 0);
        }
    }

    bool is_fixed(const ov::Node& op) const {
        if (ov::op::util::is_constant(&op)) return true;
        if (ov::is_type<ov::op::util::ShapeOfBase>(&op)) return op.get_input_partial_shape(0).is_static();
        if (op.get_input_size() == 0) return false;
        for (size_t i = 0; i < op.get_input_size(); ++i) {
            const auto* producer = op.get_input_node_ptr(i);
            const auto known = m_constants.find(producer);
            const bool constant =
                known != m_constants.end() ? known->second : ov::op::util::is_constant(producer);
            if (!constant) return false;
        }
        return true;
    }

    bool computes_shape(ov::Node& op) const {
        size_t readers = 0;
        for (auto& output : op.outputs()) {
            for (const auto& target : output.get_target_inputs()) {
                ++readers;
                const auto next = m_shape_ops.find(target.get_node());
                const bool goes_on = next != m_shape_ops.end() && next->second;
                if (!takes_a_shape(target) && !goes_on) return false;
            }
        }
        return readers != 0 && op.get_output_element_type(0).is_integral_number();
    }

    std::string device_of(const ov::Node* op) const { return op == m_reader ? m_device : affinity(*op); }

    std::string of_producer(ov::Node& op) const {
        std::string device;
        for (size_t i = 0; i < op.get_input_size() && device.empty(); ++i) {
            const auto* producer = op.get_input_node_ptr(i);
            if (!ov::op::util::is_constant(producer)) device = device_of(producer);
        }
        if (device.empty() || ov::op::util::is_output(&op)) return device;
        const auto outputs = const_cast<const ov::Node&>(op).outputs();
        if (std::all_of(outputs.begin(), outputs.end(), can_cross)) return device;
        const auto reader = of_reader(op);
        return reader.empty() ? device : reader;
    }

    std::string of_reader(ov::Node& op) const {
        for (auto& output : op.outputs()) {
            for (const auto& target : output.get_target_inputs()) {
                const auto device = device_of(target.get_node());
                if (!device.empty()) return device;
            }
        }
        return {};
    }

    static bool take(ov::Node& op, const std::string& device) {
        if (device.empty() || has_affinity(op)) return false;
        set_affinity(op, device);
        // HETERO knows ops by their names. One that was never named can share the name of an op that an
        // earlier process named the same way and saved. Names of inputs and outputs are seen by programs.
        const bool seen = ov::op::util::is_parameter(&op) || ov::op::util::is_output(&op);
        if (!seen && op.get_friendly_name() == op.get_name()) op.set_friendly_name(op.get_name() + "/added");
        return true;
    }

    const bool m_compiles;
    const ov::Node* m_reader;
    const std::string m_device;
    std::unordered_set<const ov::Node*> m_members, m_sorted;
    std::vector<ov::Node*> m_found, m_order;
    std::unordered_map<const ov::Node*, bool> m_constants, m_shape_ops;
};

}  // namespace

void fill_gaps_around(ov::Node& op) {
    Region region(false);
    region.reach_around(op);
    region.fill();
}

void fill_gaps_after(const ov::Node& op) {
    Region region(true);
    region.reach_after(op);
    region.fill();
}

void fill_gaps_before(const ov::Node& reader, const std::string& device) {
    Region region(true, &reader, device);
    region.reach_before(reader);
    region.fill();
    region.fold();
}

}  // namespace ov_autoplace
