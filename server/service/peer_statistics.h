// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/wire/identity/caller_proof.h"
#include "tributary/v1/parameter_service.pb.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// The message with the sums of a shard. They are its payload: their number
// grows with the model, which a header's must not.
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

  // `proof`: of this server. `deliver` runs on the queue's thread; call the
  // methods on this thread too.
  PeerStatistics(const v1::Plan& plan, CallerProof proof,
                 grpc::CompletionQueue* queue, Deliver deliver);

  // Asks the server of the shard that the request names.
  void Ask(const v1::StatisticsRequest& request);
  // Cancels every call; Ask has no effect afterwards.
  void Cancel();
  bool idle() const { return calls_.empty(); }

 private:
  class Call;

  const CallerProof proof_;
  grpc::CompletionQueue* const queue_;
  const Deliver deliver_;
  std::deque<grpc::GenericStub> stubs_;  // [shard]
  std::set<Call*> calls_;
  bool cancelled_ = false;
};

}  // namespace tributary
