// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/parameter_client.h"

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/mutation.h"
#include "common/host/steady_waits.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/encoded_floats.h"
#include "common/wire/header_checksum.h"
#include "common/wire/tensor_frame.h"
#include "tributary/v1/parameter_service.pb.h"
#include "worker/rank/client/block_memory.h"
#include "worker/rank/client/error_feedback.h"
#include "worker/rank/client/memory_links.h"
#include "worker/rank/client/push_trace.h"
#include "worker/rank/client/read_clock.h"
#include "worker/rank/client/round_options.h"
#include "worker/rank/client/transfer/transfer.h"
#include "worker/rank/client/transfer/transfer_round.h"

namespace tributary {
namespace {

constexpr char kPushPull[] = "/tributary.v1.ParameterService/PushPull";
constexpr char kPull[] = "/tributary.v1.ParameterService/Pull";
constexpr char kInitialize[] = "/tributary.v1.ParameterService/Initialize";

int64_t NowMicros() { return tributary::Clock::Real().NowMicros(); }

class ServersClient final : public ParameterClient {
 public:
  ServersClient(Options options, PartitionPlan partition)
      : options_(std::move(options)),
        partition_(std::move(partition)),
        mesh_(MeshOf(options_.plan)),
        feedback_(options_.plan, partition_, options_.rank),
        links_(options_.transport,
               NeedsSharedMemory(options_.plan, options_.rank,
                                 options_.incarnation),
               options_.gradient_memory, options_.rank, options_.proof.ticket(),
               partition_.num_shards()),
        round_(RoundOf(options_, partition_, mesh_)) {
    for (int shard = 0; shard < partition_.num_shards(); ++shard) {
      versions_.emplace_back(partition_.blocks(shard).size(), 0);
    }
  }

  ~ServersClient() override {
    round_.Cancel("the client is shutting down");
    (void)round_.Wait();
    (void)links_.Close();
  }

  const PartitionPlan& partition() const override { return partition_; }
  bool Holds(const Block& block) const override {
    return IsHeld(options_, mesh_, block);
  }

  absl::Status Initialize(absl::Span<const float* const> tensors) override {
    round_.Begin(options_.step_timeout);
    ForEachBlock([&](const Block& block) {
      auto memory = std::make_shared<BlockMemory>();
      Start(block, {kInitialize, "initial weights",
                    [this, &block, memory, tensors](uint32_t /*wait_ms*/) {
                      if (memory->bytes == 0) {
                        *memory = Gather(block, tensors, /*arena=*/nullptr);
                        round_.bytes_sent += memory->bytes;
                      }
                      v1::InitializeRequest request;
                      SetAddress(block, request.mutable_address());
                      request.set_crc32c(memory->crc32c);
                      SignHeader(&request);
                      return EncodeFrame(request, memory->slices);
                    },
                    [](const grpc::ByteBuffer&) { return absl::OkStatus(); }});
    });
    return round_.Wait();
  }

  absl::Status Pull(const WantedWeights& weights,
                    absl::Span<float* const> tensors) override {
    const bool finished = weights.kind == WantedWeights::Kind::kFinished;
    v1::PullRequest wanted;
    if (finished) {
      wanted.set_finished_steps(weights.number);
    } else {
      wanted.set_min_version(weights.number);
      wanted.set_exact(weights.kind == WantedWeights::Kind::kExactly);
    }
    weights_.assign(tensors.begin(), tensors.end());
    newest_version_ = 0;
    round_.Begin(options_.step_timeout);
    const std::string what = absl::StrCat(
        finished ? "pull after step " : "pull of version ", weights.number);
    ForEachBlock([&](const Block& block) {
      if (!Holds(block)) return;
      Start(block, {kPull, what,
                    [this, &block, wanted](uint32_t wait_ms) {
                      v1::PullRequest request = wanted;
                      SetAddress(block, request.mutable_address());
                      request.set_wait_ms(wait_ms);
                      SignHeader(&request);
                      return EncodeFrame(request, {});
                    },
                    [this, &block](const grpc::ByteBuffer& answer) {
                      return TakeWeights<v1::PullResponse>(block, answer);
                    }});
    });
    return round_.Wait();
  }

  void BeginStep(int64_t step, uint64_t samples,
                 absl::Span<const float* const> gradients,
                 absl::Span<float* const> weights,
                 absl::Span<const double> learning_rates) override {
    step_ = step;
    learning_rates_.assign(learning_rates.begin(), learning_rates.end());
    skipped_blocks_ = 0;
    samples_ = samples;
    total_samples_ = options_.total_samples ? options_.total_samples(step) : 0;
    gradients_ = gradients;
    weights_.assign(weights.begin(), weights.end());
    newest_version_ = 0;
    flights_.clear();
    flights_.reserve(partition_.num_blocks());
    round_.Begin(options_.step_timeout);
  }

  absl::StatusOr<RankProgress> ReadProgress() override {
    const absl::Duration deadline = SteadyNow() + options_.step_timeout;
    RankProgress progress;
    for (int shard = 0; shard < partition_.num_shards(); ++shard) {
      if (partition_.blocks(shard).empty()) continue;
      const std::string& server = options_.plan.servers(shard);
      const v1::ClockRequest request = ClockRequestTo(shard);
      TRIBUTARY_ASSIGN_OR_RETURN(const v1::ClockResponse part,
                                 ReadClock(server, request, deadline, &round_));
      TRIBUTARY_RETURN_IF_ERROR(
          links_.Connect(shard, server, part, request.address()));
      progress.Add({part.initialized(), part.steps(), part.begun()});
    }
    // A rank that contributes to no block begins with the others.
    int64_t& steps = progress.steps;
    if (steps == RankProgress::kNoBlock) steps = options_.plan.start_step();
    return progress;
  }

  void PushPull(const Block& block) override {
    // Growing would move the elements, to which network threads have pointers.
    TRIBUTARY_CHECK(std::ssize(flights_) < partition_.num_blocks());
    flights_.push_back({.begin_micros = NowMicros()});
    Flight* const flight = &flights_.back();
    const auto push = std::make_shared<Push>(
        Push{&block, PushTrace(options_.trace, step_, block)});
    Start(block, {kPushPull, absl::StrCat("push of step ", step_ + 1),
                  [this, push](uint32_t wait_ms) {
                    grpc::ByteBuffer request = EncodePush(*push, wait_ms);
                    push->trace.Sent();
                    return request;
                  },
                  [this, push, flight](const grpc::ByteBuffer& answer) {
                    flight->end_micros = NowMicros();
                    push->trace.Answered();
                    const absl::Status taken =
                        TakeWeights<v1::PushPullResponse>(*push->block, answer);
                    if (!taken.ok()) return taken;
                    push->trace.Stored();
                    if (arrived_) arrived_(*push->block);
                    return taken;
                  }});
  }

  void OnWeights(std::function<void(const Block&)> arrived) override {
    arrived_ = std::move(arrived);
  }

  absl::Status FinishStep() override {
    const absl::Status status = round_.Wait();
    // A server may still hold gradients of this step.
    if (!status.ok()) TRIBUTARY_RETURN_IF_ERROR(links_.Close());
    return status;
  }
  // One flight for each block.
  bool skipped() const override {
    return !flights_.empty() && skipped_blocks_ == flights_.size();
  }
  absl::Span<float* const> residuals() override {
    return feedback_.residuals();
  }
  int64_t newest_version() const override { return newest_version_; }
  int64_t oldest_version() const override {
    int64_t oldest = INT64_MAX;
    for (const std::vector<int64_t>& shard : versions_) {
      for (int64_t version : shard) oldest = std::min(oldest, version);
    }
    return oldest;
  }
  void Cancel(const std::string& why) override { round_.Cancel(why); }
  Traffic traffic() const override {
    return {round_.bytes_sent, round_.bytes_received, round_.retries};
  }
  const std::vector<Flight>& flights() const override { return flights_; }

 private:
  // A block's push, for all attempts.
  struct Push {
    const Block* block;
    PushTrace trace;
    int attempts = 0;
    BlockMemory sent = {};  // empty until the gradient is sent
  };

  // Only the first attempt uses shared memory: after that it is not known
  // whether the server has read the last answer's memory.
  grpc::ByteBuffer EncodePush(Push& push, uint32_t wait_ms) {
    const Block& block = *push.block;
    const MemoryLink* const link =
        push.attempts++ == 0 ? links_.of(block.shard) : nullptr;
    v1::PushPullRequest request;
    if (link != nullptr) request.set_shared_memory(link->connection());
    const bool sends =
        samples_ > 0 && (link == nullptr || !block.sends_floats() ||
                         !link->Describe(block, gradients_, &request));
    if (sends &&
        (push.sent.bytes == 0 || TRIBUTARY_MUTATED("encoded-for-each-try"))) {
      push.sent =
          GradientOf(block, gradients_, options_.gradient_memory, &feedback_);
    }
    if (push.attempts == 1 && samples_ > 0) {
      round_.bytes_sent += block.gradient_bytes();
    }
    SetAddress(block, request.mutable_address());
    request.set_rank(options_.rank);
    request.set_incarnation(options_.incarnation);
    request.set_step(step_);
    request.set_samples(samples_);
    request.set_total_samples(total_samples_ * HoldersInAReplica(block));
    request.set_crc32c(push.sent.crc32c);
    request.set_base_version(VersionOf(block));
    request.set_wait_ms(wait_ms);
    request.mutable_learning_rates()->Add(learning_rates_.begin(),
                                          learning_rates_.end());
    SignHeader(&request);
    return EncodeFrame(request, push.sent.slices);
  }

  v1::ClockRequest ClockRequestTo(int shard) const {
    v1::ClockRequest request;
    SetAddress(partition_.blocks(shard)[0], request.mutable_address());
    request.set_rank(options_.rank);
    request.set_incarnation(options_.incarnation);
    request.set_recomputes(options_.recomputes);
    SignHeader(&request);
    return request;
  }

  // The version of the weights that this client holds for the block. No two
  // threads access the same element at the same time.
  int64_t& VersionOf(const Block& block) {
    return versions_[block.shard][block.index];
  }

  // Each rank of a replica that holds the block contributes the replica's
  // samples.
  uint64_t HoldersInAReplica(const Block& block) const {
    uint64_t holders = 0;
    for (int rank = 0; rank < mesh_.model_size(); ++rank) {
      if (mesh_.Holds(rank, block.holders)) ++holders;
    }
    return holders;
  }

  template <typename Function>
  void ForEachBlock(Function function) {
    for (int shard = 0; shard < partition_.num_shards(); ++shard) {
      for (const Block& block : partition_.blocks(shard)) function(block);
    }
  }

  void Start(const Block& block, Transfer::Work work) {
    work.shard = block.shard;
    work.what = absl::StrCat(work.what, " to server ",
                             options_.plan.servers(block.shard));
    Transfer::Start(&round_, std::move(work));
  }

  void SetAddress(const Block& block, v1::BlockAddress* address) const {
    address->set_job_id(options_.plan.job_id());
    address->set_plan_epoch(options_.plan.epoch());
    address->set_shard(block.shard);
    address->set_block(block.index);
  }

  // Copies the weights of an answer into the block's slices and checks them on
  // the way. After DataLoss the slices hold invalid values, and the call is
  // repeated.
  template <typename Response>
  absl::Status TakeWeights(const Block& block, const grpc::ByteBuffer& answer) {
    Response response;
    Payload payload;
    if (const absl::Status decoded = DecodeFrame(answer, &response, &payload);
        !decoded.ok()) {
      return absl::DataLossError(decoded.message());
    }
    TRIBUTARY_RETURN_IF_ERROR(CheckHeader(response));
    if constexpr (std::is_same_v<Response, v1::PushPullResponse>) {
      if (const MemoryLink* const link = links_.of(block.shard);
          link != nullptr && response.has_shared_offset()) {
        TRIBUTARY_ASSIGN_OR_RETURN(
            payload, link->Weights(response.shared_offset(), block.bytes()));
      }
    }
    constexpr char kDamaged[] = "weights were damaged on the way";
    if (payload.size() != static_cast<size_t>(block.weights_bytes())) {
      // A damaged frame can have lost its payload field.
      if (payload.ScanFloats().crc32c != response.crc32c()) {
        return absl::DataLossError(kDamaged);
      }
      return absl::InternalError(
          absl::StrCat("server answered with ", payload.size(),
                       " bytes of weights, wanted ", block.weights_bytes()));
    }
    FloatReader reader(payload);
    uint32_t crc32c = 0;
    for (const Slice& slice : block.slices) {
      crc32c = DecodeFloats(*slice.weights_encoding, slice.size(), &reader,
                            weights_[slice.parameter] + slice.begin, crc32c);
    }
    if (crc32c != response.crc32c() && !TRIBUTARY_MUTATED("answer-unchecked")) {
      return absl::DataLossError(kDamaged);
    }
    round_.bytes_received += payload.size();
    if constexpr (std::is_same_v<Response, v1::PushPullResponse>) {
      if (response.skipped()) ++skipped_blocks_;
    }
    if (!TRIBUTARY_MUTATED("version-not-noted")) {
      VersionOf(block) = response.version();
    }
    int64_t newest = newest_version_;
    while (newest < response.version() &&
           !newest_version_.compare_exchange_weak(newest, response.version())) {
    }
    return absl::OkStatus();
  }

  const Options options_;
  const PartitionPlan partition_;
  const DeviceMesh mesh_;
  std::function<void(const Block&)> arrived_;  // may be null
  ErrorFeedback feedback_;  // used by the threads that make messages
  MemoryLinks links_;
  TransferRound round_;

  // State of the current round. The caller owns the memory that the pointers
  // refer to.
  int64_t step_ = 0;
  std::atomic<int64_t> newest_version_{0};
  std::vector<std::vector<int64_t>> versions_;  // [shard][block]
  std::vector<Flight> flights_;
  std::atomic<size_t> skipped_blocks_{0};  // whose answers say so
  std::vector<double> learning_rates_;     // empty: the schedule's
  uint64_t samples_ = 0;
  uint64_t total_samples_ = 0;  // of all replicas; 0: not announced
  absl::Span<const float* const> gradients_;
  std::vector<float*> weights_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterClient>> ParameterClient::Connect(
    Options options) {
  TRIBUTARY_ASSIGN_OR_RETURN(PartitionPlan partition,
                             MakePartitionPlan(options.plan));
  if (options.for_tests.cut) partition = *options.for_tests.cut;
  if (options.gradient_memory) {  // servers of an earlier plan may read it
    TRIBUTARY_RETURN_IF_ERROR(options.gradient_memory->Detach());
  }
  return std::make_unique<ServersClient>(std::move(options),
                                         std::move(partition));
}

}  // namespace tributary
