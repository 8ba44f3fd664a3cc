// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/ops.h"
#include "server/store/parameter_shard.h"
#include "tests/testing/status_matchers.h"

namespace tributary {

// One shard with one block of four weights, plain SGD with rate 1, so that a
// step subtracts the mean gradient.
class ParameterShardTest : public ::testing::Test {
 protected:
  ParameterShardTest() : ops_(CreateCpuOps()) { Create(2, {}); }

  void Create(int workers, OptimizerOptions optimizer, double clip_norm = 0) {
    ParameterShard::Options options;
    options.num_workers = workers;
    options.training.optimizer = optimizer;
    options.training.clip_norm = clip_norm;
    options.training.policy = std::make_unique<BulkSynchronous>();
    Create(std::move(options));
  }

  void Create(ParameterShard::Options options) {
    plan_ = std::make_unique<PartitionPlan>(
        *PartitionPlan::Create(parameters_, 1, 1 << 16));
    plan_->SetEncodings(*encoding_, Float32Encoding());
    options.plan = plan_.get();
    options.training.optimizer.learning_rate = 1;
    options.training.learning_rate = [](int64_t) { return 1.0; };
    options.ops = ops_.get();
    shard_ = std::make_unique<ParameterShard>(std::move(options));
  }

  void Initialize() {
    TRIBUTARY_EXPECT_OK(
        shard_->Initialize(0, Zeros().ScanFloats().crc32c, Zeros()));
  }

  static Payload Floats(const std::vector<float>& values) {
    return Payload::Copy(values.data(), values.size() * sizeof(float));
  }
  static Payload Zeros() { return Floats({0, 0, 0, 0}); }

  static Contribution Make(uint32_t rank, int64_t step, float value,
                           uint64_t samples = 1) {
    Contribution c;
    c.rank = rank;
    c.incarnation = 1;
    c.step = step;
    c.samples = samples;
    if (samples > 0) c.payload = Floats({value, value, value, value});
    c.crc32c = c.payload.ScanFloats().crc32c;
    return c;
  }

  // Receives a call's answer; empty until the answer comes.
  using Answer =
      std::shared_ptr<std::optional<absl::StatusOr<WeightsSnapshot>>>;
  Answer Push(Contribution c, int64_t deadline = 1000) {
    auto answer = std::make_shared<Answer::element_type>();
    shard_->PushPull(0, std::move(c), deadline, [answer](auto weights) {
      EXPECT_FALSE(answer->has_value()) << "answered twice";
      *answer = std::move(weights);
    });
    return answer;
  }
  static float First(const Answer& answer) {
    return (**answer)->weights.data()[0];
  }

  const std::unique_ptr<Ops> ops_;
  ParameterSpecs parameters_ = {{"w", {4}}};
  const Encoding* encoding_ = &Float32Encoding();
  std::unique_ptr<PartitionPlan> plan_;
  std::unique_ptr<ParameterShard> shard_;
};

}  // namespace tributary
