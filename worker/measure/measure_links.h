#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/cost/measurement.h"

namespace tributary {

// How long either end of a measurement waits for the other.
inline constexpr absl::Duration kProbeSilence = absl::Seconds(10);

// The far end of a measurement of links: echoes single bytes, swallows and
// sends as many as it is asked for. One caller at a time; a caller that neither
// sends nor takes anything for as long as `silence` is hung up on.
class LinkProbeServer {
 public:
  // Listens on host:port, a numeric address; port 0: any. Unavailable when it
  // cannot.
  static absl::StatusOr<std::unique_ptr<LinkProbeServer>> Start(
      const std::string& listen, absl::Duration silence = kProbeSilence);
  virtual ~LinkProbeServer() = default;

  virtual int port() const = 0;
  // Serves callers until Stop, or until `limit` is over.
  virtual void Serve(absl::Duration limit = absl::InfiniteDuration()) = 0;
  virtual void Stop() = 0;  // from any thread
};

// Measures the way to a LinkProbeServer at host:port: the median of small round
// trips, and the rate of the second half of what takes `seconds` each way, so
// that what an idle link lets through at once does not count. Unavailable: no
// answer within `silence`.
absl::StatusOr<LinkMeasurement> MeasureLink(
    const std::string& address, double seconds = 1.0,
    absl::Duration silence = kProbeSilence);

}  // namespace tributary
