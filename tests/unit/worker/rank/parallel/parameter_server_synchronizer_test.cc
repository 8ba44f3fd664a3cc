// SPDX-License-Identifier: Apache-2.0
// Records what is sent to the servers when the computing device fails.
#include "worker/rank/parallel/parameter_server_synchronizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"
#include "tests/testing/nccl/device_like_ops.h"
#include "tests/testing/soon.h"
#include "tests/testing/status_matchers.h"
#include "worker/train/model/model.h"

namespace tributary {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::StatusIs;

// Servers that answer every push at once: the new weights are the gradient plus
// 100. The client notes the gradients that leave, and where they lie.
class RecordingClient final : public ParameterClient {
 public:
  RecordingClient(PartitionPlan plan, std::vector<float>* pushed,
                  std::vector<const float*>* places, const bool* answers_late)
      : plan_(std::move(plan)),
        pushed_(pushed),
        places_(places),
        answers_late_(answers_late) {}
  // Answers may still come while the client ends.
  ~RecordingClient() override {
    for (const Block* block : unanswered_) Answer(*block);
  }

  const PartitionPlan& partition() const override { return plan_; }
  bool Holds(const Block& /*block*/) const override { return true; }
  absl::Status Initialize(absl::Span<const float* const>) override {
    return absl::OkStatus();
  }
  absl::Status Pull(const WantedWeights&, absl::Span<float* const>) override {
    return absl::OkStatus();
  }
  absl::StatusOr<RankProgress> ReadProgress() override {
    return RankProgress{.steps = 0};
  }
  void BeginStep(int64_t, uint64_t, absl::Span<const float* const> gradients,
                 absl::Span<float* const> weights,
                 absl::Span<const double> /*learning_rates*/) override {
    gradients_.assign(gradients.begin(), gradients.end());
    weights_.assign(weights.begin(), weights.end());
  }
  // Notes the first element of each gradient of the block.
  void PushPull(const Block& block) override {
    for (const Slice& slice : block.slices) {
      pushed_->push_back(gradients_[slice.parameter][slice.begin]);
      places_->push_back(gradients_[slice.parameter] + slice.begin);
    }
    *answers_late_ ? unanswered_.push_back(&block) : Answer(block);
  }
  void OnWeights(std::function<void(const Block&)> arrived) override {
    arrived_ = std::move(arrived);
  }
  absl::Status FinishStep() override { return cancelled_; }
  bool skipped() const override { return false; }
  absl::Span<float* const> residuals() override { return {}; }
  int64_t newest_version() const override { return 0; }
  int64_t oldest_version() const override { return 0; }
  void Cancel(const std::string& why) override {
    cancelled_ = absl::CancelledError(why);
  }
  Traffic traffic() const override { return {}; }
  const std::vector<Flight>& flights() const override { return flights_; }

 private:
  void Answer(const Block& block) {
    for (const Slice& slice : block.slices) {
      for (int64_t i = slice.begin; i < slice.end; ++i) {
        weights_[slice.parameter][i] = gradients_[slice.parameter][i] + 100;
      }
    }
    if (arrived_) arrived_(block);
  }

  const PartitionPlan plan_;
  std::vector<float>* const pushed_;
  std::vector<const float*>* const places_;
  std::vector<const float*> gradients_;
  std::vector<float*> weights_;
  std::function<void(const Block&)> arrived_;
  const bool* const answers_late_;
  std::vector<const Block*> unanswered_;
  absl::Status cancelled_;
  std::vector<Flight> flights_;
};

// While the gate is closed, the device has not computed what others wait for.
class Gate {
 public:
  void Close() {
    absl::MutexLock lock(&mu_);
    open_ = false;
  }
  void Open() {
    absl::MutexLock lock(&mu_);
    open_ = true;
  }
  void Pass() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&open_));
  }

 private:
  absl::Mutex mu_;
  bool open_ ABSL_GUARDED_BY(mu_) = true;
};

class GatedEvent final : public DeviceEvent {
 public:
  GatedEvent(const Ops* computes, Gate* gate)
      : computes_(computes), gate_(gate) {}
  void Record(Ops& ops) override {
    EXPECT_EQ(&ops, computes_);
    ++recorded_;
  }
  void Await(Ops& ops) override {
    EXPECT_NE(&ops, computes_);
    EXPECT_EQ(++awaited_, recorded_.load());
    gate_->Pass();
  }

 private:
  const Ops* const computes_;
  Gate* const gate_;
  std::atomic<int> recorded_ = 0, awaited_ = 0;
};

// Three layers, so that gradients of the upper ones have left when the device
// fails below.
class ParameterServerSynchronizerTest : public ::testing::Test {
 protected:
  ParameterServerSynchronizerTest() { Open(/*width=*/4); }

  void Open(int width, int64_t bucket_bytes = 64) {
    synchronizer_ = nullptr;
    v1::ModelSpec spec;
    for (int layer = 0; layer < 3; ++layer) {
      auto* linear = spec.add_sequential()->mutable_linear();
      linear->set_in(width);
      linear->set_out(width);
      linear->set_bias(false);
    }
    model_ =
        *Model::Create(spec, {width}, {.ops = &ops_, .max_rows = 1, .seed = 1});
    std::vector<int> places(model_->parameters().size());
    std::iota(places.begin(), places.end(), 0);
    ParameterServerSynchronizer::Options options;
    options.client = std::make_unique<RecordingClient>(
        *PartitionPlan::Create(model_->parameters(), /*num_shards=*/1,
                               bucket_bytes, /*min_block_elements=*/16),
        &pushed_, &places_, &answers_late_);
    options.model = model_.get();
    options.device = {.ops = &copies_, .model_ops = &ops_, .new_event = [this] {
                        return std::make_unique<GatedEvent>(&ops_, &gate_);
                      }};
    auto loads = std::make_unique<testing::DeviceLikeOps>();
    loads_ = loads.get();
    options.weights_ops = std::move(loads);
    options.place_in_plan = places;
    options.gradient_memory = memory_;
    synchronizer_ = *ParameterServerSynchronizer::Create(std::move(options));
  }

  // The last layer first; parameter p's gradient is 10 step + p.
  void ComputeGradients(int64_t step) {
    synchronizer_->BeginStep(step, /*samples=*/1);
    for (int p = 2; p >= 0; --p) {
      const auto value = static_cast<float>(10 * step + p);
      ops_.Fill(model_->parameters()[p].size(), value, model_->gradient(p));
      synchronizer_->GradientReady(p);
    }
  }
  absl::Status Step(int64_t step) {
    ComputeGradients(step);
    return synchronizer_->FinishStep().status();
  }

  // The new weights of parameter p, in each element.
  float Weight(int p) const {
    const float* weights = model_->weight(p);
    const int64_t size = model_->parameters()[p].size();
    EXPECT_THAT(std::vector<float>(weights, weights + size), Each(weights[0]));
    return weights[0];
  }

  testing::DeviceLikeOps ops_, copies_;
  testing::DeviceLikeOps* loads_ = nullptr;  // the synchronizer's
  Gate gate_;
  std::unique_ptr<Model> model_;
  std::vector<float> pushed_;
  std::vector<const float*> places_;
  bool answers_late_ = false;  // when the client ends
  const std::shared_ptr<SharedArena> memory_ =
      SharedArena::Create(1 << 20).value();
  std::unique_ptr<ParameterServerSynchronizer> synchronizer_;
};

// Copies through buffers are right, but slow.
TEST_F(ParameterServerSynchronizerTest, WeightsThatCannotBePinnedAreTold) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  Open(/*width=*/96);
  const std::string nothing = log.str();
  ops_.FailPins("the limit of locked memory");
  Open(/*width=*/96);
  spdlog::set_default_logger(before);
  EXPECT_EQ(nothing, "");
  const std::string text = log.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << "not for each";
  EXPECT_THAT(text, HasSubstr("the limit of locked memory"));
}

TEST_F(ParameterServerSynchronizerTest, EveryGradientLeavesOnceItIsThere) {
  TRIBUTARY_EXPECT_OK(Step(1));
  EXPECT_THAT(pushed_, ElementsAre(12, 11, 10));
}

TEST_F(ParameterServerSynchronizerTest, TheBackwardPassWaitsForNoCopy) {
  gate_.Close();
  ComputeGradients(1);
  EXPECT_THAT(pushed_, IsEmpty());
  gate_.Open();
  TRIBUTARY_EXPECT_OK(synchronizer_->FinishStep().status());
  EXPECT_THAT(pushed_, ElementsAre(12, 11, 10));
}

TEST_F(ParameterServerSynchronizerTest, WithoutSamplesNothingIsCopied) {
  TRIBUTARY_EXPECT_OK(Step(1));
  pushed_.clear();
  gate_.Close();  // nobody waits for the device
  synchronizer_->BeginStep(2, /*samples=*/0);
  for (int p = 2; p >= 0; --p) synchronizer_->GradientReady(p);
  TRIBUTARY_EXPECT_OK(synchronizer_->FinishStep().status());
  EXPECT_THAT(pushed_, ElementsAre(12, 11, 10)) << "what was there before";
  gate_.Open();
}

TEST_F(ParameterServerSynchronizerTest, WeightsArriveDuringTheBackwardPass) {
  synchronizer_->BeginStep(1, /*samples=*/1);
  for (int p = 2; p >= 0; --p) {
    const int before = loads_->copies_in();
    ops_.Fill(model_->parameters()[p].size(), static_cast<float>(10 + p),
              model_->gradient(p));
    synchronizer_->GradientReady(p);
    const absl::Time limit = absl::Now() + testing::kSoon;
    while (loads_->copies_in() == before && absl::Now() < limit) {
      std::this_thread::yield();
    }
    EXPECT_EQ(loads_->copies_in(), before + 1) << p;
  }
  TRIBUTARY_EXPECT_OK(synchronizer_->FinishStep().status());
  for (int p = 0; p < 3; ++p) EXPECT_EQ(Weight(p), 110 + p);
}

TEST_F(ParameterServerSynchronizerTest, AFaultOfTheCopiesToTheDeviceIsTold) {
  TRIBUTARY_EXPECT_OK(Step(1));
  loads_->Fail();
  EXPECT_THAT(Step(2), StatusIs(absl::StatusCode::kInternal,
                                "device: unspecified launch failure"));
}

// The first blocks of a large gradient do not wait until all of it is copied.
TEST_F(ParameterServerSynchronizerTest, ALargeGradientLeavesInPieces) {
  Open(/*width=*/1100, /*bucket_bytes=*/1 << 20);
  std::vector<size_t> left;  // blocks, before each copy
  copies_.OnCopyOut([&] { left.push_back(pushed_.size()); });
  TRIBUTARY_EXPECT_OK(Step(1));
  ASSERT_THAT(left, SizeIs(6)) << "two pieces for each parameter";
  EXPECT_EQ(left[0], 0u);
  EXPECT_EQ(left[1], 4u) << "of 4 MiB, in blocks of 1 MiB";
  EXPECT_EQ(left[2], 5u);
  for (int p = 0; p < 3; ++p) EXPECT_EQ(Weight(p), 110 + p);
}

// The job may end, or have another plan, in the middle of a step.
TEST_F(ParameterServerSynchronizerTest, EndsInTheMiddleOfAStep) {
  answers_late_ = true;
  gate_.Close();
  ComputeGradients(1);
  std::thread opens([this] { gate_.Open(); });
  synchronizer_ = nullptr;
  opens.join();
  EXPECT_THAT(pushed_, AnyOf(IsEmpty(), ElementsAre(12), ElementsAre(12, 11),
                             ElementsAre(12, 11, 10)))
      << "a gradient left that was not copied";
}

TEST_F(ParameterServerSynchronizerTest, ADevicesGradientsLeaveSharedMemory) {
  TRIBUTARY_EXPECT_OK(Step(1));
  ASSERT_EQ(places_.size(), 3u);
  for (const float* place : places_) {
    EXPECT_TRUE(memory_->OffsetOf(place, sizeof(float)).has_value());
  }
}

// A client that has given up a step detaches its memory. A device that still
// wrote to the pinned pages would leave the old gradients in place.
TEST_F(ParameterServerSynchronizerTest, GradientsFollowTheirMemory) {
  Open(/*width=*/96);
  TRIBUTARY_EXPECT_OK(Step(1));
  EXPECT_EQ(pushed_.front(), 12);
  ASSERT_TRUE(memory_->Share().ok());
  TRIBUTARY_ASSERT_OK(memory_->Detach());
  ASSERT_EQ(memory_->moves(), 1u);
  pushed_.clear();
  TRIBUTARY_EXPECT_OK(Step(2));
  EXPECT_EQ(pushed_.front(), 22);
  Open(/*width=*/96);  // pins the new pages
  pushed_.clear();
  TRIBUTARY_EXPECT_OK(Step(3));
  EXPECT_EQ(pushed_.front(), 32);
}

// The host copy still holds the gradient of the step before.
TEST_F(ParameterServerSynchronizerTest, NothingLeavesBehindAFaultOfTheDevice) {
  TRIBUTARY_EXPECT_OK(Step(1));
  pushed_.clear();
  copies_.FailCopyOut(2);
  EXPECT_THAT(Step(2), StatusIs(absl::StatusCode::kInternal,
                                "device: unspecified launch failure"));
  EXPECT_THAT(pushed_, ElementsAre(22)) << "and nothing of parameters 1 and 0";
}

// A kernel that failed to launch has left its output as it was: the copy itself
// succeeds.
TEST_F(ParameterServerSynchronizerTest, AFaultBeforeTheCopyStopsThePush) {
  synchronizer_->BeginStep(0, /*samples=*/1);
  ops_.Fail();
  for (int p = 2; p >= 0; --p) synchronizer_->GradientReady(p);
  EXPECT_FALSE(synchronizer_->FinishStep().ok());
  EXPECT_THAT(pushed_, IsEmpty());
}

// The trainer asks the device before it ends the step and is told the fault
// then. The step fails all the same.
TEST_F(ParameterServerSynchronizerTest, AFaultThatWasToldStillEndsTheStep) {
  synchronizer_->BeginStep(0, /*samples=*/1);
  ops_.Fail();
  for (int p = 2; p >= 0; --p) synchronizer_->GradientReady(p);
  EXPECT_FALSE(ops_.Synchronize().ok());
  EXPECT_THAT(synchronizer_->FinishStep(),
              StatusIs(absl::StatusCode::kInternal, "device: "));
}

}  // namespace
}  // namespace tributary
