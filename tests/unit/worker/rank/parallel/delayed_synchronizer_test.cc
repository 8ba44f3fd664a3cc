// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/delayed_synchronizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/ops.h"
#include "tests/testing/nccl/device_like_ops.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Subtracts the gradients from two weights, as SGD with rate 1 does. The answer
// to a step comes in FinishStep.
struct Server {
  std::vector<std::vector<float>> versions = {{8, 4}};
  std::vector<std::string> calls;
  absl::Status answer;
};

class ServerClient final : public ParameterClient {
 public:
  ServerClient(PartitionPlan plan, Server* server)
      : plan_(std::move(plan)), server_(*server) {}
  const PartitionPlan& partition() const override { return plan_; }
  bool Holds(const Block& /*block*/) const override { return true; }
  absl::Status Initialize(absl::Span<const float* const>) override {
    return absl::OkStatus();
  }
  absl::Status Pull(const WantedWeights& wanted,
                    absl::Span<float* const> tensors) override {
    EXPECT_EQ(wanted.kind, WantedWeights::Kind::kExactly);
    server_.calls.push_back(absl::StrCat("pull ", wanted.number));
    Give(wanted.number, tensors);
    return absl::OkStatus();
  }
  absl::StatusOr<RankProgress> ReadProgress() override {
    return RankProgress{.initialized = true, .steps = Newest()};
  }
  void BeginStep(int64_t step, uint64_t samples,
                 absl::Span<const float* const> gradients,
                 absl::Span<float* const> weights,
                 absl::Span<const double> rates) override {
    EXPECT_EQ(step, Newest());
    server_.calls.push_back(absl::StrCat("push ", step));
    if (!rates.empty())
      absl::StrAppend(&server_.calls.back(), " at ", rates[0]);
    weights_.assign(weights.begin(), weights.end());
    next_ = server_.versions.back();
    samples_ = samples;
    gradients_.assign(gradients.begin(), gradients.end());
  }
  void PushPull(const Block& block) override {
    pushed_.push_back(&block);
    for (const Slice& slice : block.slices) {
      const auto p = static_cast<size_t>(slice.parameter);
      if (samples_ > 0) next_[p] -= gradients_[p][0];
    }
  }
  void OnWeights(std::function<void(const Block&)> arrived) override {
    arrived_ = std::move(arrived);
  }
  absl::Status FinishStep() override {
    server_.calls.push_back("answer");
    size_t slices = 0;
    for (const Block* block : pushed_) slices += block->slices.size();
    EXPECT_EQ(slices, next_.size());
    const std::vector<const Block*> pushed = std::exchange(pushed_, {});
    if (!server_.answer.ok()) return server_.answer;
    server_.versions.push_back(next_);
    Give(Newest(), absl::MakeSpan(weights_));
    for (const Block* block : pushed) {
      if (arrived_) arrived_(*block);
    }
    return absl::OkStatus();
  }
  bool skipped() const override { return false; }
  absl::Span<float* const> residuals() override { return {}; }
  int64_t newest_version() const override { return Newest(); }
  int64_t oldest_version() const override { return Newest(); }
  void Cancel(const std::string& why) override {
    server_.calls.push_back("cancel");
    server_.answer = absl::CancelledError(why);
  }
  Traffic traffic() const override { return {}; }
  const std::vector<Flight>& flights() const override { return flights_; }

 private:
  int64_t Newest() const {
    return static_cast<int64_t>(server_.versions.size()) - 1;
  }
  void Give(int64_t version, absl::Span<float* const> tensors) {
    for (size_t p = 0; p < tensors.size(); ++p) {
      tensors[p][0] = server_.versions[static_cast<size_t>(version)][p];
    }
  }

  const PartitionPlan plan_;
  Server& server_;
  uint64_t samples_ = 0;
  std::vector<const float*> gradients_;
  std::vector<float*> weights_;
  std::vector<float> next_;
  std::vector<const Block*> pushed_;
  std::function<void(const Block&)> arrived_;
  std::vector<Flight> flights_;
};

class TwoWeights final : public ParameterMemory {
 public:
  const ParameterSpecs& parameters() const override { return specs_; }
  float* weight(int i) override { return &weights_[i]; }
  float* gradient(int i) override { return &gradients_[i]; }
  const std::vector<float>& weights() const { return weights_; }

 private:
  const ParameterSpecs specs_ = {{"a", {1}}, {"b", {1}}};
  std::vector<float> weights_ = {0, 0}, gradients_ = {0, 0};
};

// The copies of the simulated device are done when the call returns.
class NoEvent final : public DeviceEvent {
 public:
  void Record(Ops& /*ops*/) override {}
  void Await(Ops& /*ops*/) override {}
};

// On the host, or on a simulated device.
class DelayedSynchronizerTest : public ::testing::TestWithParam<bool> {
 protected:
  DelayedSynchronizerTest() { Open(); }

  void Open() {
    delayed_ = nullptr;
    Ops* const ops = GetParam() ? &device_ : host_.get();
    DelayedSynchronizer::Options options;
    options.memory = *ExchangeMemory::Create(&model_, ops);
    ParameterServerSynchronizer::Options exchange;
    exchange.client = std::make_unique<ServerClient>(
        *PartitionPlan::Create(model_.parameters(), /*num_shards=*/1,
                               /*bucket_bytes=*/64),
        &server_);
    exchange.model = options.memory.get();
    exchange.device = {.model_ops = ops};
    if (GetParam()) {
      exchange.device.ops = &copies_;
      exchange.device.new_event = [] { return std::make_unique<NoEvent>(); };
      exchange.weights_ops = std::make_unique<testing::DeviceLikeOps>();
    }
    exchange.place_in_plan = {0, 1};
    exchange.gradient_memory = options.memory->gradient_memory();
    options.exchange =
        *ParameterServerSynchronizer::Create(std::move(exchange));
    options.ops = ops;
    delayed_ = std::make_unique<DelayedSynchronizer>(std::move(options));
  }
  int64_t Start() {
    return delayed_->Start(nullptr, [](const RankProgress&) {}).value();
  }
  // Computes a gradient that depends on the model's weights and on the step.
  absl::Status Step(int64_t step, uint64_t samples = 1) {
    delayed_->BeginStep(step, samples);
    for (int p = 1; p >= 0; --p) {
      *model_.gradient(p) = Gradient(step, model_.weights()[p]);
      delayed_->GradientReady(p);
    }
    return delayed_->FinishStep().status();
  }
  static float Gradient(int64_t step, float weight) {
    return weight / 4 + static_cast<float>(step);
  }

  const std::unique_ptr<Ops> host_ = CreateCpuOps();
  testing::DeviceLikeOps device_, copies_;
  TwoWeights model_;
  Server server_;
  std::unique_ptr<DelayedSynchronizer> delayed_;
};

TEST_P(DelayedSynchronizerTest, EachGradientIsExactlyOneStepLate) {
  ASSERT_EQ(Start(), 0);
  for (int64_t step = 0; step < 5; ++step) TRIBUTARY_ASSERT_OK(Step(step));
  TRIBUTARY_ASSERT_OK(delayed_->End(5));
  std::vector<float> before = {8, 4}, now = {8, 4};
  ASSERT_EQ(server_.versions.size(), 6u);
  for (int64_t step = 0; step < 5; ++step) {
    std::vector<float> next = now;
    for (size_t p = 0; p < 2; ++p) next[p] -= Gradient(step, before[p]);
    before = std::exchange(now, next);
    EXPECT_EQ(server_.versions[static_cast<size_t>(step) + 1], now) << step;
  }
  EXPECT_EQ(model_.weights(), now) << "at the end they are the newest";
}

// A step computes between its predecessor's push and answer.
TEST_P(DelayedSynchronizerTest, TheExchangeGoesOnDuringTheNextStep) {
  Start();
  TRIBUTARY_ASSERT_OK(Step(0));
  EXPECT_THAT(server_.calls, ElementsAre("pull 0", "push 0"));
  TRIBUTARY_ASSERT_OK(Step(1));
  EXPECT_THAT(server_.calls,
              ElementsAre("pull 0", "push 0", "answer", "push 1"));
  server_.calls.clear();
  TRIBUTARY_ASSERT_OK(delayed_->Settle());
  TRIBUTARY_ASSERT_OK(delayed_->Settle());
  EXPECT_THAT(server_.calls, ElementsAre("answer"));
  TRIBUTARY_ASSERT_OK(Step(2));
  EXPECT_THAT(server_.calls, ElementsAre("answer", "push 2"));
}

TEST_P(DelayedSynchronizerTest, ARateGoesWithTheGradientOfItsStep) {
  Start();
  for (int64_t step = 0; step < 2; ++step) {
    delayed_->SetLearningRates({static_cast<double>(step + 3)});
    TRIBUTARY_ASSERT_OK(Step(step));
  }
  EXPECT_THAT(server_.calls,
              ElementsAre("pull 0", "push 0 at 3", "answer", "push 1 at 4"));
}

TEST_P(DelayedSynchronizerTest, AnEvaluationSeesTheNewestWeightsAndTakesNone) {
  Start();
  for (int64_t step = 0; step < 3; ++step) TRIBUTARY_ASSERT_OK(Step(step));
  const std::vector<float> late = model_.weights();
  EXPECT_EQ(late, server_.versions[2]);
  TRIBUTARY_ASSERT_OK(delayed_->ShowNewest());
  ASSERT_EQ(server_.versions.size(), 4u);
  EXPECT_EQ(model_.weights(), server_.versions[3]);
  TRIBUTARY_ASSERT_OK(delayed_->HideNewest());
  EXPECT_EQ(model_.weights(), late);
  TRIBUTARY_ASSERT_OK(Step(3));
  EXPECT_EQ(model_.weights(), server_.versions[3]);
}

TEST_P(DelayedSynchronizerTest, AReplacementGoesOnWithBothWeights) {
  server_.versions = {{8, 4}, {7, 5}, {6, 6}};
  ASSERT_EQ(Start(), 2);
  EXPECT_THAT(server_.calls, ElementsAre("pull 2", "pull 1"));
  EXPECT_THAT(model_.weights(), ElementsAre(7, 5));
  TRIBUTARY_ASSERT_OK(Step(2));
  EXPECT_THAT(model_.weights(), ElementsAre(6, 6));
}

TEST_P(DelayedSynchronizerTest, WithoutSamplesTheWeightsStillChange) {
  Start();
  TRIBUTARY_ASSERT_OK(Step(0));
  TRIBUTARY_ASSERT_OK(Step(1, /*samples=*/0));
  TRIBUTARY_ASSERT_OK(delayed_->End(2));
  EXPECT_EQ(server_.versions[2], server_.versions[1]);
  EXPECT_EQ(model_.weights(), server_.versions[2]);
}

TEST_P(DelayedSynchronizerTest, AFailedExchangeFailsTheNextStep) {
  Start();
  TRIBUTARY_ASSERT_OK(Step(0));
  server_.answer = absl::DeadlineExceededError("rank 1 is missing");
  EXPECT_EQ(delayed_->ShowNewest(), server_.answer) << "told to an evaluation";
  EXPECT_EQ(Step(1), server_.answer) << "and once more";
  EXPECT_EQ(server_.versions.size(), 1u);
}

TEST_P(DelayedSynchronizerTest, EndsInTheMiddleOfAnExchange) {
  Start();
  TRIBUTARY_ASSERT_OK(Step(0));
  server_.calls.clear();
  delayed_ = nullptr;
  EXPECT_THAT(server_.calls, ElementsAre("cancel", "answer"));
  server_.calls.clear();
  server_.answer = absl::OkStatus();
  Open();
  Start();
  TRIBUTARY_ASSERT_OK(Step(0));
  TRIBUTARY_ASSERT_OK(delayed_->End(1));
  server_.calls.clear();
  delayed_ = nullptr;
  EXPECT_THAT(server_.calls, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Devices, DelayedSynchronizerTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Device" : "Host";
                         });

}  // namespace
}  // namespace tributary
