// SPDX-License-Identifier: Apache-2.0
#include "python/src/native/follower_binding.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/wire/identity/access.h"
#include "python/src/native/raise.h"
#include "python/src/native/waits.h"
#include "worker/rank/session/follower.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace tributary {
namespace {

using Floats = nb::ndarray<nb::numpy, float>;

// A Follower that raises exceptions, waits without the GIL and reacts to
// Ctrl-C.
class FollowerBinding {
 public:
  static std::unique_ptr<FollowerBinding> Connect(
      const std::string& coordinator, double timeout, const std::string& tls,
      const std::string& token_file) {
    const absl::StatusOr<Access> access =
        Access::Read({.tls = tls, .token_file = token_file},
                     {PeerRole::kOperator, PeerRole::kWorker});
    RaiseUnlessOk(access.status(), "follow");
    auto connected =
        std::make_shared<absl::StatusOr<std::unique_ptr<Follower>>>(
            absl::CancelledError("not connected"));
    RunOrAbandon([connected, coordinator, timeout, proof = access->Proof()] {
      *connected = Follower::Connect({.coordinator = coordinator,
                                      .timeout = absl::Seconds(timeout),
                                      .proof = proof});
    });
    return std::make_unique<FollowerBinding>(
        ValueOrRaise(std::move(*connected), "follow"));
  }
  explicit FollowerBinding(std::unique_ptr<Follower> follower)
      : follower_(std::move(follower)) {}
  ~FollowerBinding() {
    nb::gil_scoped_release without_gil;
    follower_.reset();
  }

  std::vector<std::pair<std::string, Shape>> Parameters() const {
    std::vector<std::pair<std::string, Shape>> parameters;
    for (const ParameterSpec& spec : follower_->parameters()) {
      parameters.emplace_back(spec.name, spec.shape);
    }
    return parameters;
  }

  // Returns the oldest and the newest version, and the tensors, flat.
  std::tuple<int64_t, int64_t, std::vector<Floats>> Read(int64_t min_version) {
    absl::StatusOr<Follower::Weights> weights =
        absl::CancelledError("not read");
    waits_.Run([&] { weights = follower_->Read(min_version); },
               [this] { follower_->Cancel(); });
    RaiseUnlessOk(weights.status(), "follow");
    std::vector<Floats> arrays;
    for (std::vector<float>& tensor : weights->tensors) {
      auto* const kept = new std::vector<float>(std::move(tensor));
      nb::capsule owner(kept, [](void* vector) noexcept {
        delete static_cast<std::vector<float>*>(vector);
      });
      arrays.emplace_back(kept->data(), std::initializer_list{kept->size()},
                          owner);
    }
    return {weights->oldest_version, weights->newest_version,
            std::move(arrays)};
  }

 private:
  std::unique_ptr<Follower> follower_;
  Waits waits_;
};

}  // namespace

void BindFollower(nb::module_& module) {
  nb::class_<FollowerBinding>(module, "Follower")
      .def_static("connect", &FollowerBinding::Connect, nb::kw_only(),
                  "coordinator"_a, "timeout"_a, "tls"_a, "token_file"_a)
      .def_prop_ro("parameters", &FollowerBinding::Parameters)
      .def("read", &FollowerBinding::Read, "min_version"_a);
}

}  // namespace tributary
