// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/read_weights.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/mutation.h"
#include "common/host/steady_waits.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "common/wire/calls/grpc_calls.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/header_checksum.h"
#include "common/wire/retry_policy.h"
#include "common/wire/tensor_frame.h"
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
        start_micros_(options.clock->NowMicros()),
        calls_(options.for_tests.calls
                   ? options.for_tests.calls(plan)
                   : std::make_unique<GrpcCallQueue>(
                         std::vector<std::string>(plan.servers().begin(),
                                                  plan.servers().end()),
                         options.proof)) {}

  absl::StatusOr<FinalWeights> Read() {
    TRIBUTARY_ASSIGN_OR_RETURN(PartitionPlan cut, MakePartitionPlan(plan_));
    if (options_.for_tests.cut) cut = *options_.for_tests.cut;
    FinalWeights weights;
    weights.parameters = cut.parameters();
    std::vector<float*> tensors;
    for (const ParameterSpec& spec : cut.parameters()) {
      tensors.push_back(weights.tensors.emplace_back(spec.size()).data());
    }
    for (int shard = 0; shard < cut.num_shards(); ++shard) {
      for (const Block& block : cut.blocks(shard)) {
        TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<float> values,
                                   Pull(block));
        PartitionPlan::Scatter(block, values.data(),
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

  absl::StatusOr<std::vector<float>> Pull(const Block& block) {
    while (true) {
      if (options_.cancelled && options_.cancelled()) {
        return absl::CancelledError("the coordinator is closing");
      }
      absl::StatusOr<std::vector<float>> values = Call(block);
      if (values.ok()) return values;
      const absl::Status& status = values.status();
      const absl::Duration spent =
          absl::Microseconds(options_.clock->NowMicros() - start_micros_);
      if (!RetryPolicy::Repeatable(status) || spent >= options_.timeout) {
        return absl::Status(status.code(),
                            absl::StrCat(Name(block), ": ", status.message()));
      }
      SleepSteadily(kPause);
    }
  }

  absl::StatusOr<std::vector<float>> Call(const Block& block) {
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
    TRIBUTARY_ASSIGN_OR_RETURN(
        const grpc::ByteBuffer answer,
        calls_->CallAndWait(block.shard, kPull, EncodeFrame(request, {}),
                            2 * kHold));
    v1::PullResponse response;
    Payload payload;
    if (const absl::Status decoded = DecodeFrame(answer, &response, &payload);
        !decoded.ok()) {
      return absl::DataLossError(decoded.message());
    }
    return Checked(block, response, payload);
  }

  absl::StatusOr<std::vector<float>> Checked(const Block& block,
                                             const v1::PullResponse& response,
                                             const Payload& payload) const {
    TRIBUTARY_RETURN_IF_ERROR(CheckHeader(response));
    if (response.version() != version_) {
      return absl::FailedPreconditionError(
          absl::StrCat(Name(block), " has version ", response.version(),
                       ", wanted ", version_));
    }
    if (static_cast<int64_t>(payload.size()) != block.bytes()) {
      return absl::DataLossError(absl::StrCat(Name(block), " came with ",
                                              payload.size(), " bytes, wanted ",
                                              block.bytes()));
    }
    std::vector<float> values(static_cast<size_t>(block.size));
    payload.CopyTo(values.data());
    const uint32_t crc = Crc32c(values.data(), payload.size());
    if (crc != response.crc32c() &&
        !TRIBUTARY_MUTATED("final-weights-unchecked")) {
      return absl::DataLossError(absl::StrCat(
          Name(block), " came with checksum ", absl::Hex(response.crc32c()),
          ", its bytes have ", absl::Hex(crc)));
    }
    return values;
  }

  const v1::Plan& plan_;
  const int64_t version_;
  const ReadWeightsOptions& options_;
  const int64_t start_micros_;
  const std::unique_ptr<CallQueue> calls_;
};

}  // namespace

absl::StatusOr<FinalWeights> ReadFinalWeights(
    const v1::Plan& plan, int64_t version, const ReadWeightsOptions& options) {
  return WeightsReader(plan, version, options).Read();
}

}  // namespace tributary
