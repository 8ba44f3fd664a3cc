// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/cost/measurement.h"

namespace tributary {

// The time that each end of a measurement waits for the other.
inline constexpr absl::Duration kProbeSilence = absl::Seconds(10);

// The server's end of a link measurement: echoes single bytes, and receives and
// sends as many bytes as requested. Serves one caller at a time. Disconnects a
// caller that sends and receives nothing for `silence`.
class LinkProbeServer {
 public:
  // Listens on host:port with a numeric host; port 0 takes any free port.
  // Unavailable on failure.
  static absl::StatusOr<std::unique_ptr<LinkProbeServer>> Start(
      const std::string& listen, absl::Duration silence = kProbeSilence);
  virtual ~LinkProbeServer() = default;

  virtual int port() const = 0;
  // Serves callers until Stop, or until `limit` has passed.
  virtual void Serve(absl::Duration limit = absl::InfiniteDuration()) = 0;
  virtual void Stop() = 0;  // may be called from any thread
};

// Measures the link to a LinkProbeServer at host:port: the median of small
// round trips, and the transfer rate in each direction. Of the transfers, which
// take about `seconds` per direction, only the second half counts, so that the
// initial burst of an idle link does not. Unavailable: no answer within
// `silence`.
absl::StatusOr<LinkMeasurement> MeasureLink(
    const std::string& address, double seconds = 1.0,
    absl::Duration silence = kProbeSilence);

}  // namespace tributary
