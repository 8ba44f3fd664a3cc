// SPDX-License-Identifier: Apache-2.0
// Random bit flips in every message between a worker and a server, and in the
// memory that they share. Each flip must be refused or change nothing.
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/wire/shared_buffer.h"
#include "tests/integration/malformed/bit_flips.h"
#include "tests/integration/malformed/flipping_relay.h"
#include "tests/testing/cluster.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::BitFlips;
using testing::Cluster;
using testing::FlippingRelay;
using testing::ToyModel;

constexpr int kBlocks = 32;
constexpr int64_t kSteps = 2;
constexpr uint64_t kSamples = 3;
constexpr int kClockReaders = 16;

struct Case {
  std::string name;
  bool shares_memory;
  v1::WireFormat wire;
  v1::WireFormat weights_wire;
};

Cluster::Options OptionsFor(const Case& c) {
  Cluster::Options options;
  for (int i = 0; i < kBlocks; ++i) {
    ParameterSpec& spec = options.parameters.emplace_back();
    spec.name = absl::StrCat(i, ".weight");
    spec.shape = {60 + i};
    // The only rank holds all parameters, but parameters with different holders
    // get separate blocks.
    if (i % 2 == 0) spec.holders.stage = 0;
  }
  options.optimizer.learning_rate = 0.05;
  options.optimizer.momentum = 0.9;
  options.wire = c.wire;
  options.weights_wire = c.weights_wire;
  options.shares_memory = c.shares_memory;
  return options;
}

char* BeginOf(SharedArena& arena) {
  char* const some = static_cast<char*>(arena.Allocate(1));
  char* const begin = some - *arena.OffsetOf(some, 1);
  arena.Free(some);
  return begin;
}

// A worker that trains through a relay.
class Training {
 public:
  Training(const Case& c, BitFlips* flips)
      : cluster_(OptionsFor(c)),
        arena_(c.shares_memory ? SharedArena::Create(1 << 20).value()
                               : nullptr),
        relay_(&cluster_, arena_ ? BeginOf(*arena_) : nullptr, c.name, flips),
        client_(Connect(arena_)),
        model_(cluster_.options().parameters) {
    for (const std::vector<float>& tensor : model_.gradients) {
      gradients_.emplace_back(static_cast<int64_t>(tensor.size()),
                              /*stagger=*/0, arena_);
    }
  }

  // Returns the weights after the last step.
  std::vector<std::vector<float>> Run() {
    TRIBUTARY_EXPECT_OK(client_->Initialize(model_.ConstWeights()));
    relay_.EndRound(/*clients=*/1);
    ReadClocks(0);
    TRIBUTARY_EXPECT_OK(client_->Pull({}, model_.Weights()));
    relay_.EndRound(/*clients=*/1);
    for (int64_t step = 0; step < kSteps; ++step) Step(step);
    ReadClocks(kSteps);
    EXPECT_EQ(client_->oldest_version(), kSteps);
    EXPECT_EQ(client_->newest_version(), kSteps);
    const v1::ServerStatusResponse status = cluster_.server(0).GetStatus();
    EXPECT_EQ(status.contributions(), uint64_t{kBlocks} * kSteps);
    EXPECT_EQ(status.min_version(), kSteps);
    EXPECT_EQ(status.max_version(), kSteps);
    EXPECT_EQ(status.held_bytes(), 0u);
    return model_.weights;
  }

 private:
  std::unique_ptr<ParameterClient> Connect(std::shared_ptr<SharedArena> arena) {
    ParameterClient::Options options;
    options.plan = cluster_.plan();
    options.plan.set_servers(0, relay_.address());
    options.incarnation = FlippingRelay::kIncarnation;
    options.step_timeout = absl::Seconds(30);
    options.transport = arena ? Transport::kSharedMemory : Transport::kGrpc;
    options.gradient_memory = std::move(arena);
    options.for_tests.thread_from_bytes = 0;
    options.total_samples = [](int64_t) { return kSamples; };
    return ParameterClient::Connect(options).value();
  }

  // Reads the clock with the training's client and others at the same time,
  // since each pauses before it repeats the call of a damaged answer.
  void ReadClocks(int64_t steps) {
    const auto read = [steps](ParameterClient& client) {
      const absl::StatusOr<RankProgress> progress = client.ReadProgress();
      ASSERT_TRUE(progress.ok()) << progress.status();
      EXPECT_TRUE(progress->initialized);
      EXPECT_EQ(progress->steps, steps);
      EXPECT_EQ(progress->begun, steps);
    };
    std::vector<std::thread> others;
    for (int i = 1; i < kClockReaders; ++i) {
      others.emplace_back([this, &read] { read(*Connect(nullptr)); });
    }
    read(*client_);
    for (std::thread& other : others) other.join();
    relay_.EndRound(kClockReaders);
  }

  void Step(int64_t step) {
    model_.Compute(/*rank=*/0, step);
    std::vector<const float*> gradients;
    for (size_t i = 0; i < gradients_.size(); ++i) {
      std::copy(model_.gradients[i].begin(), model_.gradients[i].end(),
                gradients_[i].data());
      gradients.push_back(gradients_[i].data());
    }
    const std::vector<float*> weights = model_.Weights();
    // The rate of the undisturbed run, which the schedule gives there.
    const double rates[] = {cluster_.options().optimizer.learning_rate};
    client_->BeginStep(step, kSamples, gradients, weights, rates);
    for (const Block& block : client_->partition().blocks(0)) {
      client_->PushPull(block);
    }
    TRIBUTARY_EXPECT_OK(client_->FinishStep());
    EXPECT_FALSE(client_->skipped());
    relay_.EndRound(/*clients=*/1);
  }

  Cluster cluster_;
  const std::shared_ptr<SharedArena> arena_;
  FlippingRelay relay_;
  const std::unique_ptr<ParameterClient> client_;
  ToyModel model_;
  std::vector<SharedBuffer> gradients_;
};

TEST(BitFlipsTest, TenThousandOfThemAreRefused) {
  // Protobuf reports a damaged string as an error of the program.
  const google::protobuf::LogSilencer silence;
  const Case cases[] = {
      {"float32", false, v1::WIRE_FORMAT_FLOAT32, v1::WIRE_FORMAT_FLOAT32},
      {"bfloat16", false, v1::WIRE_FORMAT_BFLOAT16, v1::WIRE_FORMAT_BFLOAT16},
      {"float16", false, v1::WIRE_FORMAT_FLOAT16, v1::WIRE_FORMAT_FLOAT16},
      {"float32, shared memory", true, v1::WIRE_FORMAT_FLOAT32,
       v1::WIRE_FORMAT_FLOAT32},
      {"float16, shared memory", true, v1::WIRE_FORMAT_FLOAT16,
       v1::WIRE_FORMAT_FLOAT32}};
  BitFlips flips;
  for (const Case& c : cases) {
    const auto undisturbed = testing::TrainToy(
        OptionsFor(c), kSteps, [](uint32_t, int64_t) { return kSamples; });
    EXPECT_EQ(Training(c, &flips).Run(), undisturbed) << c.name;
    if (HasFailure()) break;
  }
  const BitFlips::Count all = flips.Print();
  EXPECT_GE(all.refused, 10'000);
  EXPECT_EQ(all.refused + all.same, all.flips);
}

}  // namespace
}  // namespace tributary
