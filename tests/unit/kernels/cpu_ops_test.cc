// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/device.h"

namespace tributary {
namespace {

// In float32 (1e8 + 1) - 1e8 is 0 and (1e8 - 1e8) + 1 is 1.
TEST(CpuOpsTest, WeightedSumAddsInTheOrderOfTheParts) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const float big = 1e8f, one = 1, minus = -1e8f;
  const float weights[] = {1, 1, 1, 1, 1, 1};
  float sum = 0;
  const float* small_last[] = {&big, &minus, &one};
  ops->WeightedSum(1, 3, small_last, weights, &sum);
  EXPECT_EQ(sum, 1);
  const float* small_between[] = {&big, &one, &minus};
  ops->WeightedSum(1, 3, small_between, weights, &sum);
  EXPECT_EQ(sum, 0);
  // Across the groups in which the loop takes the parts, too.
  const float* long_list[] = {&big, &one, &one, &one, &one, &minus};
  ops->WeightedSum(1, 6, long_list, weights, &sum);
  EXPECT_EQ(sum, 0);
}

TEST(CpuOpsTest, WeightedSumTakesPartsAtAnyByte) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const int64_t n = static_cast<int64_t>(values.size());
  std::vector<char> bytes(sizeof(float) * values.size() + 3);
  std::memcpy(bytes.data() + 3, values.data(), sizeof(float) * values.size());
  const float* parts[] = {reinterpret_cast<const float*>(bytes.data() + 3),
                          values.data()};
  const float weights[] = {2, 0.5f};
  std::vector<float> sum(values.size());
  CreateCpuOps()->WeightedSum(n, 2, parts, weights, sum.data());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(sum[i], 2.5f * values[i]);
  }
}

// A tensor cut at grain borders has the same grains wherever its parts lie.
TEST(CpuOpsTest, GrainSquaresDependOnTheGrainAlone) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  std::vector<float> x;
  for (int i = 0; i < 1000; ++i) x.push_back(1.0f / static_cast<float>(i + 1));
  double whole[4], first[1], rest[3];
  ops->GrainSquares(1000, 300, x.data(), whole);
  ops->GrainSquares(300, 300, x.data(), first);
  const std::vector<float> moved(x.begin() + 300, x.end());
  ops->GrainSquares(700, 300, moved.data(), rest);
  EXPECT_EQ(first[0], whole[0]);
  for (int g = 0; g < 3; ++g) EXPECT_EQ(rest[g], whole[g + 1]);
  // pi^2 / 6 less the tail, about 1 / 1000.5.
  EXPECT_NEAR(whole[0] + whole[1] + whole[2] + whole[3],
              M_PI * M_PI / 6 - 1 / 1000.5, 1e-6);
}

TEST(CpuOpsTest, LabelThatNamesNoClassMakesItsRowNaN) {
  const float logits[] = {1, 2, 1, 2, 1, 2};
  const int64_t labels[] = {2, -100, 1};
  float loss[3], weight[3], d[6];
  CreateCpuOps()->CrossEntropy(3, 2, logits, labels, CrossEntropyOptions(), 1,
                               loss, weight, d);
  EXPECT_TRUE(std::isnan(loss[0]) && std::isnan(weight[0]) && std::isnan(d[0]));
  EXPECT_EQ(loss[1], 0);
  EXPECT_EQ(weight[1], 0);
  EXPECT_EQ(d[2], 0);
  // log(1 + e^-1)
  EXPECT_NEAR(loss[2], 0.31326169, 1e-6);
  EXPECT_EQ(weight[2], 1);
}

TEST(CpuOpsTest, ProductWithBetaZeroOverwritesAnything) {
  const float a[] = {1, 2}, b[] = {3, 4};
  float c[] = {NAN};
  CreateCpuOps()->Gemm(false, false, 1, 1, 2, 1, a, b, 0, c);
  EXPECT_EQ(c[0], 11);
}

// 7 classes over ranks that have 3 and 4 of them; the logits lie far from 0,
// and the first rank's largest far below the second's.
TEST(CpuOpsTest, CrossEntropyOfPartsIsThatOfTheWhole) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const float whole[] = {950,    951,     949.5f, 1000,   1001, 998, 1000.5f,
                         1000.5, 1003.5f, 1002,   999.5f, 999,  998, 1001};
  const int64_t labels[] = {5, 1};
  const ClassRange ranges[] = {{0, 3, 7}, {3, 4, 7}};
  const float weights[] = {1, 2.5f, 0, 0.5f, 3, 1.25f, 7};
  for (const CrossEntropyOptions& options :
       {CrossEntropyOptions{}, CrossEntropyOptions{.label_smoothing = 0.25f},
        CrossEntropyOptions{.class_weights = weights},
        CrossEntropyOptions{.label_smoothing = 0.25f,
        .class_weights = weights}}) {
    float loss[2], gradient[14];
    ops->CrossEntropy(2, 7, whole, labels, options, 0.5f, loss, nullptr,
                      gradient);
    std::vector<float> logits[2], parts;
    for (int rank = 0; rank < 2; ++rank) {
      const ClassRange& range = ranges[rank];
      logits[rank].resize(2 * range.count);
      ops->CopyMatrix(2, range.count, whole + range.first, 7,
                      logits[rank].data(), range.count);
      float part[10];
      ops->CrossEntropyPart(2, range, logits[rank].data(), labels,
                            options.class_weights, part);
      parts.insert(parts.end(), part, part + 10);
    }
    for (int rank = 0; rank < 2; ++rank) {
      const int64_t n = ranges[rank].count;
      float own_loss[2];
      std::vector<float> d(2 * n);
      ops->CrossEntropyOfParts(2, ranges[rank], logits[rank].data(), labels, 2,
                               parts.data(), options, 0.5f, own_loss, d.data());
      for (int64_t r = 0; r < 2; ++r) {
        EXPECT_NEAR(own_loss[r], loss[r], 1e-5 * loss[r]);
        for (int64_t c = 0; c < n; ++c) {
          EXPECT_NEAR(d[r * n + c], gradient[r * 7 + ranges[rank].first + c],
                      1e-7);
        }
      }
    }
  }
}

TEST(CpuOpsTest, ALabelOutsideTheClassesOfAllRanksIsSeen) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const float logits[] = {1, 2, 3};
  const ClassRange range = {0, 3, 6};
  for (const int64_t label : {-1, 6}) {
    float parts[10], loss = 0, d[3];
    const float weights[] = {1, 1, 1, 1, 1, 1};
    ops->CrossEntropyPart(1, range, logits, &label, weights, parts);
    ops->CrossEntropyPart(1, range, logits, &label, weights, parts + 5);
    ops->CrossEntropyOfParts(1, range, logits, &label, 2, parts,
                             {.class_weights = weights}, 1, &loss, d);
    EXPECT_TRUE(std::isnan(loss));
    EXPECT_TRUE(std::isnan(d[2]));
  }
}

TEST(CpuOpsTest, IdsOfAnotherRankGiveZerosAndTakeNoGradient) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const float x[] = {4, 5, 6, 7};
  int64_t ids[4];
  ops->ToIds(4, x, 5, 2, ids);
  EXPECT_EQ((std::vector<int64_t>(ids, ids + 4)),
            (std::vector<int64_t>{-1, 0, 1, -1}));
  const float table[] = {1, 2, 3, 4};
  std::vector<float> y(8, 9.0f), d_table(4);
  ops->Embedding(4, 2, ids, table, y.data());
  EXPECT_EQ(y, (std::vector<float>{0, 0, 1, 2, 3, 4, 0, 0}));
  ops->EmbeddingBackward(4, 2, ids, y.data(), d_table.data());
  EXPECT_EQ(d_table, (std::vector<float>{1, 2, 3, 4}));
}

TEST(CpuOpsTest, MemoryIsAlignedToCacheLines) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  for (size_t bytes : {0, 1, 100, 4096}) {
    void* memory = ops->Allocate(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    ops->Free(memory);
  }
}

TEST(DeviceTest, CpuIsTakenWithoutAWordWhenItIsChosen) {
  std::string why;
  const std::unique_ptr<Ops> ops = CreateOps(DeviceChoice::kCpu, &why);
  ASSERT_NE(ops, nullptr);
  EXPECT_STREQ(ops->device_name(), "cpu");
  EXPECT_EQ(why, "");
}

// Holds with and without a device: auto always gives Ops, and the CPU only with
// a reason, which is also the reason that cuda gives.
TEST(DeviceTest, AutoFallsBackToTheCpuAndSaysWhy) {
  std::string why_not, why;
  const std::unique_ptr<Ops> cuda = CreateOps(DeviceChoice::kCuda, &why_not);
  const std::unique_ptr<Ops> ops = CreateOps(DeviceChoice::kAuto, &why);
  ASSERT_NE(ops, nullptr);
  EXPECT_EQ(cuda == nullptr, ops->is_host());
  EXPECT_EQ(cuda == nullptr, !why.empty());
  EXPECT_EQ(why.empty(), why_not.empty());
}

}  // namespace
}  // namespace tributary
