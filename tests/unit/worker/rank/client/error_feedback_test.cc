// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/error_feedback.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/plan/plan_codec.h"
#include "common/wire/crc32c/crc32c.h"

namespace tributary {
namespace {

constexpr v1::WireFormat kFormats[] = {
    v1::WIRE_FORMAT_INT8, v1::WIRE_FORMAT_TOP_K, v1::WIRE_FORMAT_ONE_BIT};

v1::Plan PlanWith(v1::WireFormat wire, int servers) {
  v1::Plan plan;
  plan.set_num_workers(1);
  for (int i = 0; i < servers; ++i) {
    plan.add_servers(absl::StrCat("127.0.0.1:", i + 1));
  }
  plan.set_bucket_bytes(1 << 16);
  plan.set_wire(wire);
  plan.set_error_feedback(true);
  plan.set_top_k_fraction(0.1);
  for (const auto& [name, size] :
       {std::pair("weight", 7 * 1024 + 77), {"bias", 70}, {"running", 9}}) {
    v1::ParameterSpec& spec = *plan.add_parameters();
    spec.set_name(name);
    spec.add_shape(size);
    if (name == std::string("running")) spec.set_running_momentum(0.1);
  }
  return plan;
}

// A rank with its gradients, of which `wanted` is the plain sum.
class Rank {
 public:
  explicit Rank(const v1::Plan& plan)
      : partition_(MakePartitionPlan(plan).value()),
        feedback_(plan, partition_, /*rank=*/0) {
    for (const ParameterSpec& spec : partition_.parameters()) {
      gradients.emplace_back(spec.size());
    }
    decoded = gradients;
    sums.assign(gradients.size(), {});
    for (size_t p = 0; p < sums.size(); ++p)
      sums[p].resize(gradients[p].size());
  }

  void Compute(int step) {
    for (size_t p = 0; p < gradients.size(); ++p) {
      for (size_t i = 0; i < gradients[p].size(); ++i) {
        gradients[p][i] = std::sin(0.7f * static_cast<float>(i) +
                                   1.9f * static_cast<float>(step + 1)) /
                          static_cast<float>(1 + i % 7);
      }
    }
  }

  // Encodes all blocks, and decodes them as servers do.
  void Push() {
    for (int shard = 0; shard < partition_.num_shards(); ++shard) {
      for (const Block& block : partition_.blocks(shard)) {
        for (const Slice& slice : block.slices) Push(slice);
      }
    }
  }

  const PartitionPlan& partition() const { return partition_; }
  absl::Span<float* const> residuals() const { return feedback_.residuals(); }

  std::vector<std::vector<float>> gradients, decoded;
  std::vector<std::vector<double>> sums;  // of what was decoded
  std::string last;                       // bytes of the last slice

 private:
  void Push(const Slice& slice) {
    last.assign(static_cast<size_t>(slice.gradient_bytes()), '?');
    const uint32_t crc =
        feedback_.Encode(slice, gradients[slice.parameter].data() + slice.begin,
                         last.data(), Crc32c("abc", 3));
    EXPECT_EQ(crc, Crc32c(("abc" + last).data(), last.size() + 3));
    float* const values = decoded[slice.parameter].data();
    slice.encoding->Decode(slice.size(), last.data(), values + slice.begin);
    for (int64_t i = slice.begin; i < slice.end; ++i) {
      sums[slice.parameter][i] += values[i];
    }
  }

  const PartitionPlan partition_;
  ErrorFeedback feedback_;
};

// In float: residual = (gradient + residual before) - what was decoded.
TEST(ErrorFeedbackTest, TheResidualIsWhatTheBytesLeaveOut) {
  for (const v1::WireFormat wire : kFormats) {
    Rank rank(PlanWith(wire, 2));
    std::vector<std::vector<float>> before = {
        std::vector<float>(rank.gradients[0].size()),
        std::vector<float>(rank.gradients[1].size())};
    std::vector<std::vector<double>> wanted = rank.sums;
    for (int step = 0; step < 20; ++step) {
      rank.Compute(step);
      const std::vector<std::vector<float>> gradients = rank.gradients;
      rank.Push();
      EXPECT_EQ(rank.gradients, gradients) << "the model's own memory";
      EXPECT_EQ(rank.decoded[2], gradients[2]) << "a running average";
      for (size_t p = 0; p < before.size(); ++p) {
        for (size_t i = 0; i < before[p].size(); ++i) {
          const float x = gradients[p][i] + before[p][i];
          const float rest = x - rank.decoded[p][i];
          ASSERT_EQ(rank.residuals()[p][i], rest) << wire << " " << step;
          before[p][i] = rest;
          wanted[p][i] += gradients[p][i];
          ASSERT_NEAR(rank.sums[p][i] + rest, wanted[p][i], 1e-4);
        }
      }
    }
  }
}

TEST(ErrorFeedbackTest, TheBitsDoNotDependOnTheNumberOfServers) {
  for (const v1::WireFormat wire : kFormats) {
    for (int servers : {2, 3, 5}) {
      Rank some(PlanWith(wire, servers));
      Rank alone(PlanWith(wire, 1));
      for (int step = 0; step < 3; ++step) {
        for (Rank* rank : {&alone, &some}) {
          rank->Compute(step);
          rank->Push();
        }
        EXPECT_EQ(some.decoded, alone.decoded) << wire << " " << servers;
      }
      for (size_t p = 0; p < 2; ++p) {
        const size_t n = some.gradients[p].size();
        EXPECT_EQ(absl::MakeSpan(some.residuals()[p], n),
                  absl::MakeSpan(alone.residuals()[p], n));
      }
    }
  }
}

TEST(ErrorFeedbackTest, OnlyEncodedParametersThatTheRankPushesHaveAResidual) {
  v1::Plan plan = PlanWith(v1::WIRE_FORMAT_INT8, 1);
  const PartitionPlan partition = MakePartitionPlan(plan).value();
  const ErrorFeedback all(plan, partition, 0);
  ASSERT_EQ(all.residuals().size(), 3u);
  EXPECT_NE(all.residuals()[0], nullptr);
  EXPECT_NE(all.residuals()[1], nullptr);
  EXPECT_EQ(all.residuals()[2], nullptr);

  plan.set_num_workers(2);
  plan.mutable_mesh()->set_data(1);
  plan.mutable_mesh()->set_stages(2);
  plan.mutable_mesh()->set_tensor(1);
  plan.mutable_parameters(0)->set_stage(1);
  plan.mutable_parameters(1)->set_stage(2);
  const PartitionPlan staged = MakePartitionPlan(plan).value();
  const ErrorFeedback first(plan, staged, 0), second(plan, staged, 1);
  EXPECT_NE(first.residuals()[0], nullptr);
  EXPECT_EQ(first.residuals()[1], nullptr);
  EXPECT_EQ(second.residuals()[0], nullptr);
  EXPECT_NE(second.residuals()[1], nullptr);

  plan.set_error_feedback(false);
  EXPECT_TRUE(ErrorFeedback(plan, staged, 0).residuals().empty());
}

TEST(ErrorFeedbackTest, WithoutItTheGradientAloneIsEncoded) {
  for (const v1::WireFormat wire : kFormats) {
    v1::Plan plan = PlanWith(wire, 1);
    plan.set_error_feedback(false);
    Rank rank(plan);
    rank.Compute(0);
    rank.Push();
    const std::vector<std::vector<float>> first = rank.decoded;
    rank.Push();
    EXPECT_EQ(rank.decoded, first);
  }
}

// The server refuses the bytes, and what was left out before is still there.
TEST(ErrorFeedbackTest, ANumberThatIsNotFiniteLeavesTheResidual) {
  for (const v1::WireFormat wire : kFormats) {
    for (const float bad : {std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
      Rank rank(PlanWith(wire, 1));
      rank.Compute(0);
      rank.Push();
      const float before = rank.residuals()[0][2048];
      rank.gradients[0][2048] = bad;
      rank.Push();
      EXPECT_FALSE(std::isfinite(rank.decoded[0][2048]));
      EXPECT_EQ(rank.residuals()[0][2048], before);
      for (size_t p = 0; p < 2; ++p) {
        for (size_t i = 0; i < rank.gradients[p].size(); ++i) {
          ASSERT_TRUE(std::isfinite(rank.residuals()[p][i])) << wire;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tributary
