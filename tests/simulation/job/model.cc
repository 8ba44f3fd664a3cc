// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/job/model.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/encoding/encoding.h"

namespace tributary::simulation {
namespace {

constexpr int64_t kLargeElements = 3 * kGrainElements + 5;
constexpr int64_t kUntagged = 3;  // elements of a tensor without tags

// Small enough that weights stay bounded at any learning rate.
float MadeUp(uint32_t rank, int64_t step, size_t element, float weight) {
  const auto mixed = static_cast<float>((element * 2654435761u + rank * 40503u +
                                         static_cast<size_t>(step) * 977u) %
                                        1009u);
  return weight * 0.05f + mixed * (1.0f / 1009) - 0.5f;
}

}  // namespace

Model::Model(const Scenario& scenario) : scenario_(scenario) {
  const bool bulk = scenario.sync == Scenario::Sync::kBulk;
  if (!bulk) tags_.emplace(scenario.workers, scenario.steps);
  for (int p = 0; p < scenario.parameters; ++p) {
    const int64_t size = bulk ? 3 + 5 * p : tags_->size() + kUntagged;
    parameters_.push_back({absl::StrCat(p, ".weight"), {size}});
  }
  if (scenario.large_parameter) {
    parameters_.push_back({"large", {kLargeElements}});
  }
  if (!bulk) return;
  v1::Plan plan;
  plan.set_num_workers(scenario.workers);
  plan.set_error_feedback(scenario.residuals);
  for (int rank = 0; rank < scenario.workers; ++rank) {
    feedback_.emplace_back(plan, Cut(/*servers=*/1),
                           static_cast<uint32_t>(rank));
  }
  testing::ReferenceRun::Options options;
  options.parameters = parameters_;
  options.workers = scenario.workers;
  options.optimizer = scenario.optimizer;
  options.learning_rate = [this](int64_t step) { return LearningRate(step); };
  options.clip_norm = scenario.clip_norm;
  options.skip_nonfinite = scenario.skip_nonfinite;
  options.initial = Initial();
  options.delay = scenario.delay;
  options.samples = [this](uint32_t rank, int64_t step) {
    return Samples(rank, step);
  };
  options.gradient = [this](uint32_t rank, int64_t step, const Tensors& weights,
                            Tensors* gradient) {
    Gradient(rank, step, weights, gradient);
    if (scenario_.residuals) SendEncoded(rank, gradient);
  };
  reference_ = std::make_unique<testing::ReferenceRun>(std::move(options));
}

PartitionPlan Model::Cut(int servers) const {
  absl::StatusOr<PartitionPlan> cut =
      PartitionPlan::Create(parameters_, servers, /*bucket_bytes=*/4,
                            /*min_block_elements=*/1);
  TRIBUTARY_CHECK(cut.ok());
  if (scenario_.residuals) {
    cut->SetEncodings(*FindEncoding("one_bit"), Float32Encoding());
  }
  return *std::move(cut);
}

void Model::SendEncoded(uint32_t rank, Tensors* gradient) {
  const PartitionPlan cut = Cut(/*servers=*/1);
  for (const Block& block : cut.blocks(0)) {
    for (const Slice& slice : block.slices) {
      float* const values = (*gradient)[slice.parameter].data() + slice.begin;
      std::string bytes(static_cast<size_t>(slice.gradient_bytes()), '\0');
      feedback_[rank].Encode(slice, values, bytes.data(), /*crc=*/0);
      slice.encoding->Decode(slice.size(), bytes.data(), values);
    }
  }
}

Tensors Model::Initial() const {
  Tensors weights;
  for (const ParameterSpec& spec : parameters_) {
    std::vector<float>& tensor = weights.emplace_back(spec.size(), 0.0f);
    if (tagged()) continue;
    for (size_t i = 0; i < tensor.size(); ++i) {
      tensor[i] = MadeUp(99, static_cast<int64_t>(weights.size()), i, 0);
    }
  }
  return weights;
}

void Model::Gradient(uint32_t rank, int64_t step, const Tensors& weights,
                     Tensors* gradient) const {
  const size_t first = tagged() ? static_cast<size_t>(tags_->size()) : 0;
  for (size_t p = 0; p < weights.size(); ++p) {
    std::vector<float>& tensor = (*gradient)[p];
    if (tagged()) tags_->Fill(rank, step, absl::MakeSpan(tensor));
    for (size_t i = first; i < tensor.size(); ++i) {
      tensor[i] = MadeUp(rank, step, i + p, weights[p][i]);
    }
  }
  const bool broken = scenario_.skip_nonfinite && step == scenario_.steps / 2 &&
                      rank == static_cast<uint32_t>(scenario_.workers - 1);
  if (broken) gradient->back()[0] = std::numeric_limits<float>::quiet_NaN();
}

// In uneven jobs some ranks have no samples in some steps, and a step may have
// no samples at all.
uint64_t Model::Samples(uint32_t rank, int64_t step) const {
  if (!scenario_.uneven_samples) return 4;
  return (rank * 7 + static_cast<uint64_t>(step) * 3) % 5;
}

uint64_t Model::AllSamples(int64_t step) const {
  uint64_t samples = 0;
  for (int rank = 0; rank < scenario_.workers; ++rank) {
    samples += Samples(static_cast<uint32_t>(rank), step);
  }
  return samples;
}

double Model::LearningRate(int64_t step) const {
  if (tagged()) return 1;
  return scenario_.optimizer.learning_rate /
         (1 + 0.1 * static_cast<double>(step));
}

}  // namespace tributary::simulation
