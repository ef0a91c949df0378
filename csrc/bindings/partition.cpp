#include "ov_autoplace/partition.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>

#include "arrays.hpp"
#include "node_kinds.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ov_autoplace;
using namespace ov_autoplace::bindings;

namespace {

std::pair<std::optional<std::int32_t>, NumpyVector<std::int32_t>> partition(
    const PartitionGraph& graph, const Vector<std::int32_t>& devices) {
    check_size(devices.shape(0), static_cast<std::size_t>(graph.size()), "devices");
    std::optional<std::int32_t> count;
    std::vector<std::int32_t> roots;
    {
        nb::gil_scoped_release unlocked;
        Partitioner partitioner(graph);
        const std::int32_t submodels = partitioner.partition(devices.data());
        if (submodels != Partitioner::refused) count = submodels;
        roots = partitioner.roots();
    }
    return {count, to_numpy(std::move(roots))};
}

}  // namespace

void init_partition(nb::module_& m) {
    nb::class_<PartitionGraph>(m, "PartitionGraph",
                               "A graph of ops, prepared for being cut into HETERO's subgraphs many times.")
        .def(
            "__init__",
            [](PartitionGraph* self, const Vector<std::uint8_t>& kinds,
               const Vector<std::int32_t>& tensor_producer, const Vector<std::int32_t>& tensor_offsets,
               const Vector<std::int32_t>& tensor_consumers, std::int32_t rules) {
                new (self)
                    PartitionGraph(node_kinds(kinds), to_vector(tensor_producer), to_vector(tensor_offsets),
                                   to_vector(tensor_consumers), hetero_rules(rules));
            },
            "kinds"_a, "tensor_producer"_a, "tensor_offsets"_a, "tensor_consumers"_a, "rules"_a,
            "Args:\n"
            "    kinds: ``uint8[N]`` in topological order: 0 op, 1 Parameter, 2 Constant, 3 Result.\n"
            "    tensor_producer: Op that makes each tensor, ``int32[T]``.\n"
            "    tensor_offsets, tensor_consumers: CSR of consuming ops, one entry per input port.\n"
            "    rules: 0 as OpenVINO had them until 2026.2.1, 1 from 2026.3.0 on.\n\n"
            "Raises:\n"
            "    ValueError: The arrays do not fit together or are not in topological order.")
        .def("partition", &partition, "devices"_a,
             "Number of submodels and, per op, the first op of its subgraph, for ``devices`` "
             "(``int32[N]``).\n\n"
             "No number where subgraphs wait for each other in a cycle, so that HETERO refuses the "
             "placement.");
}
