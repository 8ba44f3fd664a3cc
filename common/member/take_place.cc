// SPDX-License-Identifier: Apache-2.0
#include "common/member/take_place.h"

#include <unistd.h>

#include <optional>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/host/address.h"
#include "common/host/steady_waits.h"
#include "common/member/place_search.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

constexpr absl::Duration kLogEvery = absl::Seconds(4);

}  // namespace

v1::RegisterRequest MakeRegistration(const Member::Options& options) {
  v1::RegisterRequest request;
  request.set_role(options.role);
  const SimulatedHost* const simulated = options.simulated;
  request.set_host(simulated ? simulated->name() : HostName());
  request.set_pid(simulated ? simulated->pid() : getpid());
  request.set_address(options.address);
  request.set_metrics_address(options.metrics_address);
  request.set_instance(options.instance);
  if (options.instance.empty()) {
    std::random_device chance;
    const uint64_t random = uint64_t{chance()} << 32 | chance();
    request.set_instance(
        absl::StrCat(request.host(), "-", getpid(), "-", absl::Hex(random)));
  }
  if (options.wanted_index) request.set_wanted_index(*options.wanted_index);
  return request;
}

// A last call with a shorter timeout may end before its answer arrives.
constexpr absl::Duration kShortCall = absl::Seconds(1);

absl::StatusOr<v1::RegisterResponse> TakePlace(
    const Member::Options& options, const v1::RegisterRequest& request,
    CoordinatorClient& client) {
  const auto now = [&options] {
    return absl::Microseconds(options.clock->NowMicros());
  };
  const PlaceSearch search(now(), options.timeouts.join);
  absl::Duration logged = search.start();
  absl::Status refusal;  // the coordinator's last one
  while (true) {
    const absl::Duration timeout = search.CallTimeout(now());
    absl::StatusOr<v1::RegisterResponse> place =
        client.Register(request, timeout);
    if (place.ok()) return place;
    absl::Status status = place.status();
    if (!absl::IsUnavailable(status)) {
      refusal = status;
    } else if (timeout >= kShortCall) {
      refusal = absl::OkStatus();
    } else if (!refusal.ok()) {
      // The refusal says more than that no answer came in so short a time.
      status = refusal;
    }
    const double seconds = absl::ToDoubleSeconds(now() - search.start());
    const std::optional<absl::Duration> pause = search.After(status, now());
    if (!pause && !PlaceSearch::Waits(status)) return place;
    if (!pause) {
      return absl::Status(
          status.code(),
          absl::StrFormat("no place at coordinator %s after %.1f s: %s",
                          options.coordinator, seconds,
                          std::string(status.message())));
    }
    if (now() - logged >= kLogEvery) {
      spdlog::info("waiting for coordinator {} ({:.0f} of {:.0f} s): {}",
                   options.coordinator, seconds,
                   absl::ToDoubleSeconds(options.timeouts.join),
                   std::string(status.message()));
      logged = now();
    }
    SleepSteadily(*pause);
  }
}

}  // namespace tributary
