#include "common/member/take_place.h"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

constexpr absl::Duration kJoinChunk = absl::Seconds(5);  // then a log line
constexpr absl::Duration kFullPause = absl::Milliseconds(250);

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "unknown";
  return name;
}

}  // namespace

v1::RegisterRequest MakeRegistration(const Member::Options& options) {
  v1::RegisterRequest request;
  request.set_role(options.role);
  request.set_host(HostName());
  request.set_pid(getpid());
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

absl::StatusOr<v1::RegisterResponse> TakePlace(
    const Member::Options& options, const v1::RegisterRequest& request,
    CoordinatorClient& client) {
  const int64_t start = options.clock->NowMicros();
  int64_t logged = start;
  while (true) {
    const absl::Duration left =
        options.join_timeout -
        absl::Microseconds(options.clock->NowMicros() - start);
    absl::StatusOr<v1::RegisterResponse> place = client.Register(
        request, std::clamp(left, absl::ZeroDuration(), kJoinChunk));
    if (place.ok() || !(absl::IsUnavailable(place.status()) ||
                        absl::IsAlreadyExists(place.status()))) {
      return place;
    }
    const int64_t now = options.clock->NowMicros();
    const double seconds = static_cast<double>(now - start) / 1e6;
    if (absl::Microseconds(now - start) >= options.join_timeout) {
      return absl::Status(
          place.status().code(),
          absl::StrFormat("no place at coordinator %s after %.1f s: %s",
                          options.coordinator, seconds,
                          std::string(place.status().message())));
    }
    if (now - logged >= 4'000'000) {
      spdlog::info("waiting for coordinator {} ({:.0f} of {:.0f} s): {}",
                   options.coordinator, seconds,
                   absl::ToDoubleSeconds(options.join_timeout),
                   std::string(place.status().message()));
      logged = now;
    }
    if (absl::IsAlreadyExists(place.status())) absl::SleepFor(kFullPause);
  }
}

}  // namespace tributary
