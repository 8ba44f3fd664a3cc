// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/worker/train/model/tensor_ranks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <utility>

#include "common/base/parameter_slice.h"
#include "common/layers/model_parameters.h"
#include "worker/rank/collective/mesh.h"
#include "worker/rank/collective/peer_communicator.h"

namespace tributary::testing {

TensorRanks::TensorRanks(const Setup& setup) : ranks_(setup.ranks) {
  auto meshes = CreateInProcessMesh(setup.ranks);
  const auto spec = FromText<v1::ModelSpec>(setup.layers);
  const auto loss = FromText<v1::LossSpec>(setup.loss);
  for (int r = 0; r < setup.ranks; ++r) {
    TensorRank& rank = ranks_[r];
    rank.ops = CreateCpuOps();
    rank.communicator = std::make_unique<PeerCommunicator>(
        PeerCommunicator::Options{.mesh = std::move(meshes[r]),
                                  .ops = rank.ops.get(),
                                  .timeout = setup.timeout,
                                  .piece_elements = 4096,
                                  .small_elements = setup.small_elements});
    rank.group = std::make_unique<TensorGroup>(TensorGroup::Options{
        .ops = rank.ops.get(), .communicator = rank.communicator.get()});
    auto model = Model::Create(spec, setup.sample_shape,
                               {.ops = rank.ops.get(),
                                .max_rows = setup.max_rows,
                                .seed = setup.seed,
                                .group = rank.group.get(),
                                .cut_logits = loss.has_cross_entropy(),
                                .first_layer = setup.first_layer,
                                .end_layer = setup.end_layer});
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) return;
    rank.model = *std::move(model);
    if (setup.end_layer > 0) continue;  // only the last stage has a loss
    const int64_t outputs = rank.model->output_shape().back();
    auto made =
        Loss::Create(loss, {.ops = rank.ops.get(),
                            .max_rows = setup.max_rows,
                            .outputs = outputs,
                            .positions = rank.model->output_size() / outputs,
                            .cut = rank.model->output_cut()});
    EXPECT_TRUE(made.ok()) << made.status();
    if (made.ok()) rank.loss = *std::move(made);
  }
  const ParameterSpecs all = ModelParameters(spec);
  for (int p = 0; p < num_parameters(); ++p) {
    const int place = PlaceOf(all, model().parameters()[p].name);
    whole_.push_back(all[place]);
    SetWeight(p, Noise(Size(p), place + 100));
  }
}

void TensorRanks::Run(
    const std::function<void(int r, TensorRank& rank)>& body) {
  std::vector<std::thread> threads;
  for (int r = 0; r < size(); ++r) {
    threads.emplace_back([&, r] { body(r, ranks_[r]); });
  }
  for (std::thread& thread : threads) thread.join();
}

void TensorRanks::SetWeight(int p, const Floats& whole) {
  for (TensorRank& rank : ranks_) {
    SliceParameter(whole_[p].shape, rank.model->slices()[p], whole.data(),
                   rank.model->weight(p));
  }
}

Floats TensorRanks::Weight(int p) {
  return Assemble(p, [p](Model& model) { return model.weight(p); });
}

Floats TensorRanks::Gradient(int p) {
  return Assemble(p, [p](Model& model) { return model.gradient(p); });
}

Floats TensorRanks::Forward(const Floats& features, int64_t rows,
                            const ForwardContext& context) {
  std::vector<Floats> outputs(ranks_.size());
  Run([&](int r, TensorRank& rank) {
    const float* y = rank.model->Forward(features.data(), rows, context);
    outputs[r] = Floats(y, y + rows * rank.model->output_size());
  });
  return Join(outputs);
}

TensorRanks::Step TensorRanks::Train(const Floats& features,
                                     const LossTargets& targets, int64_t rows,
                                     double scale,
                                     const ForwardContext& context,
                                     bool accumulate) {
  std::vector<Floats> outputs(ranks_.size());
  std::vector<double> losses(ranks_.size());
  Run([&](int r, TensorRank& rank) {
    const float* y = rank.model->Forward(features.data(), rows, context);
    outputs[r] = Floats(y, y + rows * rank.model->output_size());
    const auto d = rank.loss->Differentiate(y, targets, rows, scale);
    ASSERT_TRUE(d.ok()) << d.status();
    rank.model->Backward(*d, accumulate, nullptr);
    losses[r] = *rank.loss->Sum();
    EXPECT_TRUE(rank.model->status().ok()) << rank.model->status();
  });
  for (const double loss : losses) EXPECT_EQ(loss, losses[0]);
  return {Join(outputs), losses[0]};
}

void TensorRanks::Backward(const Floats& dy, bool accumulate) {
  Run([&](int, TensorRank& rank) {
    rank.model->Backward(dy.data(), accumulate, nullptr);
  });
}

Floats TensorRanks::Assemble(int p,
                             const std::function<float*(Model&)>& array) {
  Floats whole(static_cast<size_t>(Size(p)));
  for (TensorRank& rank : ranks_) {
    Model& model = *rank.model;
    const ParameterSlice& slice = model.slices()[p];
    PlaceSlice(whole_[p].shape, slice, array(model), whole.data());
    if (!slice.whole()) continue;
    EXPECT_EQ(std::memcmp(array(model), array(*ranks_[0].model),
                          whole.size() * sizeof(float)),
              0)
        << model.parameters()[p].name << " differs between ranks";
  }
  return whole;
}

Floats TensorRanks::Join(const std::vector<Floats>& outputs) {
  const OutputCut& first = model().output_cut();
  if (first.group == nullptr) {
    for (const Floats& y : outputs) EXPECT_EQ(y, outputs[0]);
    return outputs[0];
  }
  const int64_t m = static_cast<int64_t>(outputs[0].size()) / first.range.count;
  Floats whole(static_cast<size_t>(m * first.range.total));
  for (int r = 0; r < size(); ++r) {
    const ClassRange& range = ranks_[r].model->output_cut().range;
    ranks_[r].ops->CopyMatrix(m, range.count, outputs[r].data(), range.count,
                              whole.data() + range.first, range.total);
  }
  return whole;
}

}  // namespace tributary::testing
