// SPDX-License-Identifier: Apache-2.0
#include "python/src/native/checkpoint_binding.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "python/src/native/raise.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tributary {
namespace {

using HostFloats = nb::ndarray<float, nb::c_contig, nb::device::cpu>;

struct OpenCheckpoint {
  std::unique_ptr<CheckpointReader> reader;
};

OpenCheckpoint Open(const std::string& folder) {
  absl::StatusOr<std::unique_ptr<CheckpointReader>> reader;
  {
    nb::gil_scoped_release without_gil;
    reader = CheckpointReader::Open(folder);
  }
  return {ValueOrRaise(std::move(reader), "open")};
}

int64_t StepOf(const OpenCheckpoint& checkpoint) {
  return checkpoint.reader->manifest().step();
}

std::vector<std::string> StateNames(const OpenCheckpoint& checkpoint) {
  return checkpoint.reader->state_names();
}

std::vector<std::pair<std::string, Shape>> Parameters(
    const OpenCheckpoint& checkpoint) {
  std::vector<std::pair<std::string, Shape>> parameters;
  for (const ParameterSpec& spec : checkpoint.reader->parameters()) {
    parameters.emplace_back(spec.name, spec.shape);
  }
  return parameters;
}

// Fills `values`, of the parameter's size, with its weights (tensor 0) or with
// a state (1 + its index).
void Read(const OpenCheckpoint& checkpoint, int tensor, int parameter,
          HostFloats values) {
  const CheckpointReader& reader = *checkpoint.reader;
  const int tensors = static_cast<int>(reader.state_names().size()) + 1;
  const int parameters = static_cast<int>(reader.parameters().size());
  if (tensor < 0 || tensor >= tensors || parameter < 0 ||
      parameter >= parameters) {
    Raise(absl::InvalidArgumentError(
              absl::StrCat("wanted a tensor from 0 below ", tensors,
                           " and a parameter "
                           "from 0 below ",
                           parameters, ", got ", tensor, " and ", parameter)),
          "read");
  }
  absl::Status read;
  {
    nb::gil_scoped_release without_gil;
    read = reader.ReadRange(tensor, parameter, 0,
                            absl::MakeSpan(values.data(), values.size()));
  }
  RaiseUnlessOk(read, "read");
}

}  // namespace

void BindCheckpoint(nb::module_& module) {
  nb::class_<OpenCheckpoint>(module, "Checkpoint")
      .def_static("open", &Open, "folder"_a)
      .def_prop_ro("step", &StepOf)
      .def_prop_ro("parameters", &Parameters)
      .def_prop_ro("state_names", &StateNames)
      .def("read", &Read, "tensor"_a, "parameter"_a, "values"_a);
}

}  // namespace tributary
