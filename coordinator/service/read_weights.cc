// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/read_weights.h"

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/partition_plan.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "common/wire/blocking_call.h"
#include "common/wire/channel.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/deadline.h"
#include "common/wire/header_checksum.h"
#include "common/wire/retry_policy.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary {
namespace {

// How long a server may hold a call. Short, so that a cancelled read ends soon.
constexpr absl::Duration kHold = absl::Seconds(2);
constexpr absl::Duration kPause = absl::Milliseconds(100);

constexpr char kPull[] = "/tributary.v1.ParameterService/Pull";

class WeightsReader {
 public:
  WeightsReader(const v1::Plan& plan, int64_t version,
                const ReadWeightsOptions& options)
      : plan_(plan),
        version_(version),
        options_(options),
        start_micros_(options.clock->NowMicros()) {}

  absl::StatusOr<FinalWeights> Read() {
    TRIBUTARY_ASSIGN_OR_RETURN(const PartitionPlan cut,
                               MakePartitionPlan(plan_));
    FinalWeights weights;
    weights.parameters = cut.parameters();
    std::vector<float*> tensors;
    for (const ParameterSpec& spec : cut.parameters()) {
      tensors.push_back(weights.tensors.emplace_back(spec.size()).data());
    }
    for (int shard = 0; shard < cut.num_shards(); ++shard) {
      channel_ = DataChannel(plan_.servers(shard),
                             options_.proof.ForChannel(PeerRole::kServer));
      for (const Block& block : cut.blocks(shard)) {
        TRIBUTARY_ASSIGN_OR_RETURN(const std::string payload, Pull(block));
        PartitionPlan::Scatter(block,
                               reinterpret_cast<const float*>(payload.data()),
                               absl::MakeConstSpan(tensors));
      }
    }
    return weights;
  }

 private:
  std::string Name(const Block& block) const {
    return absl::StrCat("block ", block.index, " of server ", block.shard,
                        " at ", plan_.servers(block.shard));
  }

  absl::StatusOr<std::string> Pull(const Block& block) {
    while (true) {
      if (options_.cancelled && options_.cancelled()) {
        return absl::CancelledError("the coordinator is closing");
      }
      v1::PullResponse response;
      absl::Status status = Call(block, &response);
      if (status.ok()) status = Check(block, response);
      if (status.ok()) return std::move(*response.mutable_payload());
      const absl::Duration spent =
          absl::Microseconds(options_.clock->NowMicros() - start_micros_);
      if (!RetryPolicy::Repeatable(status) || spent >= options_.timeout) {
        return absl::Status(status.code(),
                            absl::StrCat(Name(block), ": ", status.message()));
      }
      absl::SleepFor(kPause);
    }
  }

  absl::Status Call(const Block& block, v1::PullResponse* response) {
    v1::PullRequest request;
    request.mutable_address()->set_job_id(plan_.job_id());
    request.mutable_address()->set_plan_epoch(plan_.epoch());
    request.mutable_address()->set_shard(static_cast<uint32_t>(block.shard));
    request.mutable_address()->set_block(static_cast<uint32_t>(block.index));
    request.set_min_version(version_);
    if (plan_.weights_wire() != v1::WIRE_FORMAT_FLOAT32) {
      request.set_unrounded(true);
    }
    request.set_wait_ms(
        static_cast<uint32_t>(absl::ToInt64Milliseconds(kHold)));
    SignHeader(&request);
    grpc::ClientContext context;
    context.set_deadline(DeadlineAfter(2 * kHold));
    options_.proof.AddTo(&context);
    return BlockingCall(channel_, kPull, &context, request, response);
  }

  absl::Status Check(const Block& block,
                     const v1::PullResponse& response) const {
    TRIBUTARY_RETURN_IF_ERROR(CheckHeader(response));
    if (response.version() != version_) {
      return absl::FailedPreconditionError(
          absl::StrCat(Name(block), " has version ", response.version(),
                       ", wanted ", version_));
    }
    const std::string& payload = response.payload();
    if (static_cast<int64_t>(payload.size()) != block.bytes()) {
      return absl::DataLossError(absl::StrCat(Name(block), " came with ",
                                              payload.size(), " bytes, wanted ",
                                              block.bytes()));
    }
    const uint32_t crc = Crc32c(payload.data(), payload.size());
    if (crc != response.crc32c()) {
      return absl::DataLossError(absl::StrCat(
          Name(block), " came with checksum ", absl::Hex(response.crc32c()),
          ", its bytes have ", absl::Hex(crc)));
    }
    return absl::OkStatus();
  }

  const v1::Plan& plan_;
  const int64_t version_;
  const ReadWeightsOptions& options_;
  const int64_t start_micros_;
  std::shared_ptr<grpc::Channel> channel_;  // to the current shard's server
};

}  // namespace

absl::StatusOr<FinalWeights> ReadFinalWeights(
    const v1::Plan& plan, int64_t version, const ReadWeightsOptions& options) {
  return WeightsReader(plan, version, options).Read();
}

}  // namespace tributary
