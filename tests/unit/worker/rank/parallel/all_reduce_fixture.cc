// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/worker/rank/parallel/all_reduce_fixture.h"

#include <cstring>
#include <limits>
#include <numeric>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/plan/plan_codec.h"
#include "server/store/parameter_shard.h"
#include "server/sync/sync_policy.h"
#include "tests/testing/soon.h"
#include "tests/testing/status_matchers.h"
#include "worker/rank/collective/mesh.h"
#include "worker/rank/collective/peer_communicator.h"
#include "worker/rank/collective/staged_communicator.h"

namespace tributary {
namespace {

v1::ModelSpec Spec() {
  v1::ModelSpec spec;
  auto* first = spec.add_sequential()->mutable_linear();
  first->set_in(40);
  first->set_out(130);  // 5,200 weights: several grains
  spec.add_sequential()->mutable_batch_norm()->set_features(130);
  auto* second = spec.add_sequential()->mutable_linear();
  second->set_in(130);
  second->set_out(30);
  return spec;
}

std::unique_ptr<Model> MakeModel(Ops* ops) {
  return *Model::Create(Spec(), {40}, {.ops = ops, .max_rows = 1, .seed = 1});
}

// Numbers that look like gradients or weights; different for every argument.
float Number(uint64_t which, int64_t i) {
  uint64_t x = which * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(i) + 1;
  x ^= x >> 31;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 29;
  return static_cast<float>(static_cast<int64_t>(x % 20001) - 10000) * 1e-4f;
}
float Gradient(int rank, int64_t step, int parameter, int64_t i) {
  return Number(
      1000 + 100 * static_cast<uint64_t>(step) + 10 * rank + parameter, i);
}
// Uneven, and one rank has nothing in one step.
uint64_t Samples(int rank, int64_t step) {
  return rank == 1 && step == 2 ? 0 : 5 + 3 * static_cast<uint64_t>(rank);
}
double Rate(int64_t step) { return 0.1 / static_cast<double>(step + 1); }

Tensors InitialWeights(const ParameterSpecs& parameters) {
  Tensors weights;
  for (size_t p = 0; p < parameters.size(); ++p) {
    std::vector<float>& tensor = weights.emplace_back(parameters[p].size());
    for (size_t i = 0; i < tensor.size(); ++i) {
      tensor[i] = Number(p, static_cast<int64_t>(i));
    }
  }
  return weights;
}

Tensors WeightsOf(Model& model) {
  Tensors weights;
  for (size_t p = 0; p < model.parameters().size(); ++p) {
    const float* w = model.weight(static_cast<int>(p));
    weights.emplace_back(w, w + model.parameters()[p].size());
  }
  return weights;
}

std::vector<int> AllOf(const ParameterSpecs& parameters) {
  std::vector<int> places(parameters.size());
  std::iota(places.begin(), places.end(), 0);
  return places;
}

Payload Pack(const Block& block, const Tensors& tensors) {
  std::vector<const float*> pointers;
  for (const auto& tensor : tensors) pointers.push_back(tensor.data());
  std::vector<float> payload(block.size);
  PartitionPlan::Gather(block, pointers, payload.data());
  return Payload::Copy(payload.data(), payload.size() * sizeof(float));
}

// Checks that before each exchange `exchanges` waits for `computes`, and that
// nothing is exchanged before the end of the first step.
class CheckedEvent final : public DeviceEvent {
 public:
  CheckedEvent(Ops* computes, Ops* exchanges,
               AllReduceSynchronizerTest::Overlap* overlap)
      : computes_(computes), exchanges_(exchanges), overlap_(*overlap) {}
  void Record(Ops& ops) override {
    EXPECT_EQ(&ops, computes_);
    ++recorded_;
  }
  void Await(Ops& ops) override {
    EXPECT_EQ(&ops, exchanges_);
    EXPECT_EQ(++awaited_, recorded_.load());
    EXPECT_TRUE(overlap_.loaded.load()) << "kernels may still be loaded";
    ++overlap_.waits;
  }

 private:
  Ops* const computes_;
  Ops* const exchanges_;
  AllReduceSynchronizerTest::Overlap& overlap_;
  std::atomic<int> recorded_ = 0, awaited_ = 0;
};

}  // namespace

std::vector<Tensors> AllReduceSynchronizerTest::Run(int size, UpdateOn on,
                                                    bool poison, bool skip) {
  std::vector<std::unique_ptr<Mesh>> sides = CreateInProcessMesh(size);
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  std::vector<Tensors> weights(size);
  for (Overlap& overlap : overlaps_) {
    overlap.waits = 0;
    overlap.loaded = false;
  }
  statuses_.assign(size, absl::OkStatus());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const std::unique_ptr<Ops> computes = MakeOps(), exchanges = MakeOps();
      std::unique_ptr<Communicator> group = std::make_unique<PeerCommunicator>(
          PeerCommunicator::Options{.mesh = std::move(sides[rank]),
                                    .ops = ops.get(),
                                    .timeout = testing::kSoon,
                                    .piece_elements = 512,
                                    .small_elements = 64});
      if (on_device_) {
        group =
            std::make_unique<StagedCommunicator>(StagedCommunicator::Options{
                .host = std::move(group), .ops = exchanges.get()});
      }
      const std::unique_ptr<Model> model = MakeModel(computes.get());
      weights[rank] = Train({rank, size, on, poison, skip, computes.get(),
                             exchanges.get(), model.get()},
                            std::move(group), &statuses_[rank]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return weights;
}

std::unique_ptr<Ops> AllReduceSynchronizerTest::MakeOps() const {
  if (on_device_) return std::make_unique<testing::DeviceLikeOps>();
  return CreateCpuOps();
}

std::unique_ptr<AllReduceSynchronizer>
AllReduceSynchronizerTest::MakeSynchronizer(
    const Rank& rank, std::unique_ptr<Communicator> group) {
  std::function<std::unique_ptr<DeviceEvent>()> new_event;
  if (on_device_) {
    new_event = [this, rank] {
      return std::make_unique<CheckedEvent>(rank.computes, rank.exchanges,
                                            &overlaps_[rank.rank]);
    };
  }
  std::function<std::vector<uint64_t>(int64_t)> samples;
  if (!as_programs_) {
    samples = [size = rank.size](int64_t step) {
      std::vector<uint64_t> samples;
      for (int r = 0; r < size; ++r) samples.push_back(Samples(r, step));
      return samples;
    };
  }
  auto synchronizer = AllReduceSynchronizer::Create(
      {.device = {.ops = rank.exchanges,
                  .model_ops = rank.computes,
                  .new_event = new_event},
       .group = std::move(group),
       .model = rank.model,
       .part = {.planned = rank.model->parameters(),
                .mesh = {.data = rank.size, .tensor = tensor_ranks_},
                .place = {.data = rank.rank, .tensor = tensor_ranks_ - 1},
                .place_in_plan = AllOf(rank.model->parameters())},
       .bucket_bytes = 6000,
       .first_bucket_bytes = 100,
       .update = {.on = rank.on,
                  .optimizer = GetParam().optimizer,
                  .learning_rate = Rate,
                  .groups = GetParam().groups,
                  .clip_norm = GetParam().clip_norm,
                  .skip_nonfinite = rank.skip},
       .samples = samples,
       .checkpoints = Checkpoints(rank.rank)});
  EXPECT_TRUE(synchronizer.ok()) << synchronizer.status();
  return *std::move(synchronizer);
}

AllReduceOptions::Checkpoints AllReduceSynchronizerTest::Checkpoints(int rank) {
  return {.every_steps = directory_.empty() ? 0 : 2,
          .directory = directory_,
          .job_id = 5,
          .on_written =
              [this, rank](const Checkpointer::Written& written,
                           const std::vector<std::string>& names) {
                EXPECT_TRUE(written.file.ok()) << written.file.status();
                absl::MutexLock lock(&mu_);
                state_names_ = names;
                if (written.step == 2) files_[rank] = *written.file;
              },
          .restore = restore_,
          .start_step = restore_ ? 2 : 0};
}

Tensors AllReduceSynchronizerTest::Train(const Rank& rank,
                                         std::unique_ptr<Communicator> group,
                                         absl::Status* status) {
  Model& model = *rank.model;
  const auto synchronizer = MakeSynchronizer(rank, std::move(group));
  GradientSynchronizer::MakeWeights initial;
  if (rank.rank == 0) {
    initial = [&] { return InitialWeights(model.parameters()); };
  }
  const absl::StatusOr<int64_t> start =
      synchronizer->Start(initial, [](const auto&) {});
  EXPECT_TRUE(start.ok()) << start.status();
  for (int64_t step = *start; step < kSteps && status->ok(); ++step) {
    const absl::StatusOr<int64_t> finished =
        TrainStep(rank, step, *synchronizer);
    *status = finished.status();
    if (finished.ok()) {
      EXPECT_EQ(*finished, step + 1);
    }
    if (!directory_.empty() && step == 1 && status->ok()) AwaitFile(rank);
    if (corrupt_ && rank.rank == 1 && step == 0) model.weight(1)[3] += 1e-6f;
  }
  return WeightsOf(model);
}

absl::StatusOr<int64_t> AllReduceSynchronizerTest::TrainStep(
    const Rank& rank, int64_t step, AllReduceSynchronizer& synchronizer) {
  Model& model = *rank.model;
  Overlap& overlap = overlaps_[rank.rank];
  const int before = overlap.waits;
  synchronizer.BeginStep(step, Samples(rank.rank, step));
  if (fails_in_step_ == step) {
    absl::MutexLock lock(&mu_);
    before_fault_[rank.rank] = WeightsOf(model);
  }
  if (fails_in_step_ == step && rank.rank == 1) {
    fails_(static_cast<testing::DeviceLikeOps&>(*rank.computes),
           static_cast<testing::DeviceLikeOps&>(*rank.exchanges));
  }
  std::vector<int> order = AllOf(model.parameters());
  if (!as_programs_ || rank.rank != 1) absl::c_reverse(order);
  for (const int p : order) {
    const bool computes = Samples(rank.rank, step) > 0;
    for (int64_t i = 0; computes && i < model.parameters()[p].size(); ++i) {
      model.gradient(p)[i] = Gradient(rank.rank, step, p, i);
    }
    if (rank.poison && step == 1 && rank.rank == 1 && p == 2) {
      model.gradient(p)[7] = std::numeric_limits<float>::quiet_NaN();
    }
    synchronizer.GradientReady(p);
  }
  if (on_device_ && step == kSteps - 1 && fails_in_step_ < 0) {
    // Later steps exchange during the backward pass.
    while (overlap.waits == before) std::this_thread::yield();
  }
  overlap.loaded = true;
  return synchronizer.FinishStep();
}

void AllReduceSynchronizerTest::AwaitFile(const Rank& rank) {
  absl::MutexLock lock(&mu_);
  const auto written = [&] {
    return files_.count(rank.rank) > 0 ||
           (rank.rank > 0 && rank.on != UpdateOn::kOwnCut);
  };
  EXPECT_TRUE(mu_.AwaitWithTimeout(absl::Condition(&written), testing::kSoon));
}

void AllReduceSynchronizerTest::WriteManifestOfStep2() {
  absl::MutexLock lock(&mu_);
  v1::CheckpointManifest manifest;
  manifest.set_job_id(5);
  manifest.set_step(2);
  manifest.set_total_steps(kSteps);
  manifest.set_steps_per_epoch(kSteps);
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  ToProto(MakeModel(ops.get())->parameters(), manifest.mutable_parameters());
  for (const std::string& name : state_names_) manifest.add_state_names(name);
  for (const auto& [rank, file] : files_) *manifest.add_files() = file;
  TRIBUTARY_ASSERT_OK(WriteManifest(directory_, manifest));
}

Tensors AllReduceSynchronizerTest::OnAServer(int size, bool skip) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const std::unique_ptr<Model> model = MakeModel(ops.get());
  const PartitionPlan plan =
      *PartitionPlan::Create(model->parameters(), 1, 1 << 14);
  ParameterShard::Options options;
  options.plan = &plan;
  options.num_workers = size;
  options.training.optimizer = GetParam().optimizer;
  options.training.learning_rate = Rate;
  options.training.groups = GetParam().groups;
  options.training.clip_norm = GetParam().clip_norm;
  options.training.policy = std::make_unique<BulkSynchronous>();
  options.ops = ops.get();
  options.training.nonfinite =
      skip ? NonFiniteAction::kSkip : NonFiniteAction::kFail;
  ParameterShard shard(std::move(options));
  Tensors weights = InitialWeights(plan.parameters());
  for (const Block& block : plan.blocks(0)) {
    const Payload payload = Pack(block, weights);
    TRIBUTARY_EXPECT_OK(
        shard.Initialize(block.index, payload.ScanFloats().crc32c, payload));
  }
  for (int64_t step = 0; step < kSteps; ++step) {
    for (int rank = 0; rank < size; ++rank) {
      Tensors gradients = weights;
      for (size_t p = 0; p < gradients.size(); ++p) {
        for (size_t i = 0; i < gradients[p].size(); ++i) {
          gradients[p][i] = Gradient(rank, step, static_cast<int>(p),
                                     static_cast<int64_t>(i));
        }
      }
      if (skip && step == 1 && rank == 1) {
        gradients[2][7] = std::numeric_limits<float>::quiet_NaN();
      }
      for (const Block& block : plan.blocks(0)) {
        Contribution c;
        c.rank = static_cast<uint32_t>(rank);
        c.incarnation = 1;
        c.step = step;
        c.samples = Samples(rank, step);
        if (c.samples > 0) c.payload = Pack(block, gradients);
        c.crc32c = c.payload.ScanFloats().crc32c;
        shard.PushPull(block.index, std::move(c), 1000,
                       [](const auto& done) { TRIBUTARY_EXPECT_OK(done); });
      }
    }
  }
  for (const Block& block : plan.blocks(0)) {
    shard.Pull(block.index, kSteps, 1000, [&](const auto& snapshot) {
      ASSERT_TRUE(snapshot.ok()) << snapshot.status();
      std::vector<float*> tensors;
      for (auto& tensor : weights) tensors.push_back(tensor.data());
      PartitionPlan::Scatter(block, snapshot->weights.data(), tensors);
    });
  }
  return weights;
}

void AllReduceSynchronizerTest::ExpectSameBits(const Tensors& a,
                                               const Tensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t p = 0; p < a.size(); ++p) {
    ASSERT_EQ(a[p].size(), b[p].size());
    EXPECT_EQ(
        std::memcmp(a[p].data(), b[p].data(), a[p].size() * sizeof(float)), 0)
        << "parameter " << p;
  }
}

}  // namespace tributary
