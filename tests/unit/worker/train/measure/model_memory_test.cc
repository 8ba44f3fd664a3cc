// SPDX-License-Identifier: Apache-2.0
// Compares the memory that the cost model predicts with what a model takes: the
// linker hands every allocation of a device to this file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/layers/model_costs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/device.h"
#include "tests/unit/common/layers/simple_model.h"
#include "worker/train/model/model.h"

namespace {
int64_t allocated_bytes = 0;
}  // namespace

extern "C" {
void* __real_aligned_alloc(size_t alignment, size_t bytes);
void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  allocated_bytes += static_cast<int64_t>(bytes);
  return __real_aligned_alloc(alignment, bytes);
}
}

namespace tributary {
namespace {

// Bytes that a model for `rows` samples takes.
int64_t BytesOf(const v1::ModelSpec& spec, const Shape& sample, int64_t rows) {
  std::string why;
  const std::unique_ptr<Ops> ops = CreateOps(DeviceChoice::kCpu, &why);
  allocated_bytes = 0;
  const auto model =
      Model::Create(spec, sample, {.ops = ops.get(), .max_rows = rows});
  EXPECT_TRUE(model.ok()) << model.status();
  return allocated_bytes;
}

struct Case {
  const char* label;
  const char* model;
  Shape sample;
};

class ModelMemoryTest : public ::testing::TestWithParam<Case> {};

// 512 more samples must take 512 times the predicted size of one. In the
// difference, scratch that does not grow and the rounding of arrays fall away.
TEST_P(ModelMemoryTest, IsWhatTheLayersAreSaidToKeep) {
  const v1::ModelSpec spec = ModelOf(GetParam().model);
  const absl::StatusOr<ModelCosts> costs =
      CostsOfModel(spec, GetParam().sample);
  ASSERT_TRUE(costs.ok()) << costs.status();
  int64_t elements = costs->workspace_elements;
  for (const LayerCost& layer : costs->layers) elements += layer.kept_elements;
  const int64_t measured = BytesOf(spec, GetParam().sample, 1024) -
                           BytesOf(spec, GetParam().sample, 512);
  EXPECT_EQ(measured, 512 * 4 * elements);
}

INSTANTIATE_TEST_SUITE_P(
    Presets, ModelMemoryTest,
    ::testing::Values(
        Case{"Mlp",
             "  mlp: {in: 64, hidden: [32, 32], out: 16, dropout: 0.5}",
             {64}},
        Case{"MlpGelu",
             "  mlp: {in: 64, hidden: [32, 64], out: 16, activation: gelu}",
             {8, 8}},
        Case{"Cnn",
             "  cnn: {image: 16, channels: [4, 8], hidden: 32, "
             "classes: 16}",
             {16, 16}},
        Case{"Gpt",
             "  gpt: {layers: 2, dim: 32, heads: 2, length: 16, "
             "vocabulary: 32, dropout: 0.1}",
             {16}},
        Case{"Residual",
             R"(
  sequential:
    - residual:
        body: [{conv2d: {in: 2, out: 4, kernel: 3, padding: 1}}, relu]
        shortcut: [{conv2d: {in: 2, out: 4, kernel: 1}}]
    - avg_pool: {kernel: 2}
    - global_avg_pool
    - linear: {in: 4, out: 16})",
             {2, 8, 8}}),
    [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace tributary
