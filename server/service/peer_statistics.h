// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/wire/calls/outgoing_calls.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary {

// Encodes the sums of a shard as a message. They are the payload, because their
// number grows with the model and headers have a limit.
grpc::ByteBuffer EncodeStatistics(absl::Span<const double> values);
// DataLoss: the message is damaged.
absl::StatusOr<std::vector<double>> DecodeStatistics(
    const grpc::ByteBuffer& message);

// Asks other servers for their sums of a step and gives the answers to
// `deliver`. Retries while a peer does not answer. Create it with
// std::make_shared: its calls share its ownership, so it may be dropped after
// Cancel.
class PeerStatistics : public std::enable_shared_from_this<PeerStatistics> {
 public:
  using Deliver = std::function<void(const v1::StatisticsRequest& request,
                                     std::vector<double> values)>;

  // `calls`: to the servers of the plan. `deliver` runs on the thread of their
  // tags; call the methods on this thread too.
  PeerStatistics(std::unique_ptr<OutgoingCalls> calls, Deliver deliver)
      : outgoing_(std::move(calls)), deliver_(std::move(deliver)) {}

  // Asks the server of the shard that the request names.
  void Ask(const v1::StatisticsRequest& request);
  // Cancels every call; Ask has no effect afterwards.
  void Cancel();
  bool idle() const { return calls_.empty(); }

 private:
  class Call;

  const std::unique_ptr<OutgoingCalls> outgoing_;
  const Deliver deliver_;
  std::set<Call*> calls_;
  bool cancelled_ = false;
};

}  // namespace tributary
