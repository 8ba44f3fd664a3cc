// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/host/processors/near_processors.h"
#include "common/wire/crc32c/crc32c.h"
#include "python/src/native/checkpoint_binding.h"
#include "python/src/native/follower_binding.h"
#include "python/src/native/raise.h"
#include "python/src/native/session_binding.h"
#include "worker/train/data/batches/sampler.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tributary {
namespace {

using Rows = nb::ndarray<nb::numpy, uint32_t, nb::ndim<1>>;
using Bytes = nb::ndarray<const uint8_t, nb::c_contig, nb::device::cpu>;

// The order of an epoch's rows (worker/train/data/batches/sampler.h), [rows].
Rows Shuffled(int64_t rows, uint64_t seed, int64_t epoch) {
  const BatchCut cut{.rows = rows, .global_batch = 1};
  RaiseUnlessOk(cut.Validate(), "shuffled_order");
  auto order = std::make_unique<std::vector<uint32_t>>();
  {
    nb::gil_scoped_release without_gil;
    *order = ShuffledOrder(rows, seed, epoch);
  }
  uint32_t* const data = order->data();
  nb::capsule owner(order.release(), [](void* vector) noexcept {
    delete static_cast<std::vector<uint32_t>*>(vector);
  });
  return Rows(data, {static_cast<size_t>(rows)}, owner);
}

uint32_t Crc32cOf(Bytes bytes, uint32_t crc) {
  nb::gil_scoped_release without_gil;
  return ExtendCrc32c(crc, bytes.data(), bytes.size());
}

}  // namespace
}  // namespace tributary

NB_MODULE(_native, module) {
  // After an exception the interpreter keeps objects of its traceback alive.
  nb::set_leak_warnings(false);
  module.doc() = "The C++ client of Tributary; see the package tributary.";
  tributary::BindSession(module);
  tributary::BindCheckpoint(module);
  tributary::BindFollower(module);
  module.def("shuffled_order", &tributary::Shuffled, "rows"_a, "seed"_a,
             "epoch"_a);
  module.def(
      "stay_near",
      [](const std::string& pci_id) { return tributary::StayNear(pci_id); },
      "pci_id"_a);
  module.def("crc32c", &tributary::Crc32cOf, "data"_a, "crc"_a = 0);
}
