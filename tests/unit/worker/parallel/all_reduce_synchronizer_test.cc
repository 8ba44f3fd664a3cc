// Ranks as threads, against what a parameter server makes of the same
// gradients: the bits must be the same.
#include "worker/parallel/all_reduce_synchronizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <thread>
#include <vector>

#include "common/checkpoint/checkpoint_directory.h"
#include "common/plan/plan_codec.h"
#include "server/store/parameter_shard.h"
#include "server/sync/sync_policy.h"
#include "tests/testing/nccl/device_like_ops.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"
#include "worker/collective/mesh.h"
#include "worker/collective/peer_communicator.h"
#include "worker/collective/staged_communicator.h"

namespace tributary {
namespace {

using testing::StatusIs;
using Tensors = std::vector<std::vector<float>>;
using UpdateOn = AllReduceSynchronizer::UpdateOn;

constexpr UpdateOn kEverywhere[] = {UpdateOn::kEveryRank, UpdateOn::kOwnCut,
                                    UpdateOn::kRankZero};

constexpr int kSteps = 4;

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

struct Case {
  const char* name;
  OptimizerOptions optimizer;
  double clip_norm = 0;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

class AllReduceSynchronizerTest : public testing::TemporaryFolderTest,
                                  public ::testing::WithParamInterface<Case> {
 protected:
  // What one rank is left with; `poison` puts a NaN into rank 1's step 2, whose
  // step 3 has no samples.
  Tensors Train(std::unique_ptr<Communicator> group, UpdateOn on, bool poison,
                bool skip, absl::Status* status) {
    const int rank = group->rank(), size = group->size();
    // The model's, and the one that exchanges.
    const std::unique_ptr<Ops> ops = MakeOps(), beside = MakeOps();
    const std::unique_ptr<Model> model = MakeModel(ops.get());
    auto synchronizer = AllReduceSynchronizer::Create(
        {.device = {.ops = beside.get(),
                    .model_ops = ops.get(),
                    .new_event = NewEvents(ops.get(), beside.get())},
         .group = std::move(group),
         .model = model.get(),
         .part = {.planned = model->parameters(),
                  .mesh = {.data = size, .tensor = tensor_ranks_},
                  .place = {.data = rank, .tensor = tensor_ranks_ - 1},
                  .place_in_plan = AllOf(model->parameters())},
         .bucket_bytes = 6000,
         .first_bucket_bytes = 100,
         .update = {.on = on,
                    .optimizer = GetParam().optimizer,
                    .clip_norm = GetParam().clip_norm,
                    .skip_nonfinite = skip,
                    .learning_rate = Rate},
         .samples =
             [size](int64_t step) {
               std::vector<uint64_t> samples;
               for (int r = 0; r < size; ++r)
                 samples.push_back(Samples(r, step));
               return samples;
             },
         .checkpoints = Checkpoints(rank)});
    EXPECT_TRUE(synchronizer.ok()) << synchronizer.status();
    GradientSynchronizer::MakeWeights initial;
    if (rank == 0) {
      initial = [&] { return InitialWeights(model->parameters()); };
    }
    const absl::StatusOr<int64_t> start =
        (*synchronizer)->Start(initial, [](const auto&) {});
    EXPECT_TRUE(start.ok()) << start.status();
    for (int64_t step = *start; step < kSteps && status->ok(); ++step) {
      (*synchronizer)->BeginStep(step, Samples(rank, step));
      if (fails_in_step_ == step) {
        absl::MutexLock lock(&mu_);
        before_fault_[rank] = WeightsOf(*model);
      }
      if (fails_in_step_ == step && rank == 1) {
        fails_(static_cast<testing::DeviceLikeOps&>(*ops),
               static_cast<testing::DeviceLikeOps&>(*beside));
      }
      for (int p = static_cast<int>(model->parameters().size()) - 1; p >= 0;
           --p) {
        const bool computes = Samples(rank, step) > 0;
        for (int64_t i = 0; computes && i < model->parameters()[p].size();
             ++i) {
          model->gradient(p)[i] = Gradient(rank, step, p, i);
        }
        if (poison && step == 1 && rank == 1 && p == 2) {
          model->gradient(p)[7] = std::numeric_limits<float>::quiet_NaN();
        }
        (*synchronizer)->GradientReady(p);
      }
      const absl::StatusOr<int64_t> finished = (*synchronizer)->FinishStep();
      *status = finished.status();
      if (finished.ok()) {
        EXPECT_EQ(*finished, step + 1);
      }
      if (!directory_.empty() && step == 1 && status->ok()) {
        // Cuts that come before the file is begun would be given up.
        absl::MutexLock lock(&mu_);
        const auto written = [&] {
          return files_.count(rank) > 0 ||
                 (rank > 0 && on != UpdateOn::kOwnCut);
        };
        EXPECT_TRUE(
            mu_.AwaitWithTimeout(absl::Condition(&written), absl::Seconds(20)));
      }
      if (corrupt_ && rank == 1 && step == 0) model->weight(1)[3] += 1e-6f;
    }
    return WeightsOf(*model);
  }

  static Tensors WeightsOf(Model& model) {
    Tensors weights;
    for (size_t p = 0; p < model.parameters().size(); ++p) {
      const float* w = model.weight(static_cast<int>(p));
      weights.emplace_back(w, w + model.parameters()[p].size());
    }
    return weights;
  }

  static std::vector<int> AllOf(const ParameterSpecs& parameters) {
    std::vector<int> places(parameters.size());
    std::iota(places.begin(), places.end(), 0);
    return places;
  }

  std::unique_ptr<Ops> MakeOps() const {
    if (on_device_) return std::make_unique<testing::DeviceLikeOps>();
    return CreateCpuOps();
  }

  // That what computes is waited for, by what exchanges, before each exchange.
  class CheckedEvent final : public DeviceEvent {
   public:
    CheckedEvent(Ops* computes, Ops* exchanges, std::atomic<int>* waits)
        : computes_(computes), exchanges_(exchanges), waits_(*waits) {}
    void Record(Ops& ops) override {
      EXPECT_EQ(&ops, computes_);
      ++recorded_;
    }
    void Await(Ops& ops) override {
      EXPECT_EQ(&ops, exchanges_);
      EXPECT_EQ(++awaited_, recorded_.load());
      ++waits_;
    }

   private:
    Ops* const computes_;
    Ops* const exchanges_;
    std::atomic<int>& waits_;
    std::atomic<int> recorded_ = 0, awaited_ = 0;
  };
  std::function<std::unique_ptr<DeviceEvent>()> NewEvents(Ops* computes,
                                                          Ops* exchanges) {
    if (!on_device_) return nullptr;
    return [=, this] {
      return std::make_unique<CheckedEvent>(computes, exchanges, &waits_);
    };
  }

  AllReduceSynchronizer::Checkpoints Checkpoints(int rank) {
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

  // What the coordinator does once every file of step 2 is there.
  void WriteManifestOfStep2() {
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

  std::vector<Tensors> Run(int size, UpdateOn on, bool poison = false,
                           bool skip = false) {
    std::vector<std::unique_ptr<Mesh>> sides = CreateInProcessMesh(size);
    const std::unique_ptr<Ops> ops = CreateCpuOps(), device = MakeOps();
    std::vector<Tensors> weights(size);
    statuses_.assign(size, absl::OkStatus());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        std::unique_ptr<Communicator> group =
            std::make_unique<PeerCommunicator>(
                PeerCommunicator::Options{.mesh = std::move(sides[rank]),
                                          .ops = ops.get(),
                                          .timeout = absl::Seconds(20),
                                          .piece_elements = 512,
                                          .small_elements = 64});
        if (on_device_) {
          group =
              std::make_unique<StagedCommunicator>(StagedCommunicator::Options{
                  .host = std::move(group), .ops = device.get()});
        }
        weights[rank] =
            Train(std::move(group), on, poison, skip, &statuses_[rank]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return weights;
  }

  // The same contributions to one server; without the second step's for `skip`.
  Tensors OnAServer(int size, bool skip = false) {
    const std::unique_ptr<Ops> ops = CreateCpuOps();
    const std::unique_ptr<Model> model = MakeModel(ops.get());
    const PartitionPlan plan =
        *PartitionPlan::Create(model->parameters(), 1, 1 << 14);
    ParameterShard::Options options;
    options.plan = &plan;
    options.num_workers = size;
    options.training.optimizer = GetParam().optimizer;
    options.training.learning_rate = Rate;
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
          shard.Initialize(block.index, payload.Crc32c(), payload));
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
          c.crc32c = c.payload.Crc32c();
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

  static Payload Pack(const Block& block, const Tensors& tensors) {
    std::vector<const float*> pointers;
    for (const auto& tensor : tensors) pointers.push_back(tensor.data());
    std::vector<float> payload(block.size);
    PartitionPlan::Gather(block, pointers, payload.data());
    return Payload::Copy(payload.data(), payload.size() * sizeof(float));
  }

  static void ExpectSameBits(const Tensors& a, const Tensors& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t p = 0; p < a.size(); ++p) {
      ASSERT_EQ(a[p].size(), b[p].size());
      EXPECT_EQ(
          std::memcmp(a[p].data(), b[p].data(), a[p].size() * sizeof(float)), 0)
          << "parameter " << p;
    }
  }

  std::vector<absl::Status> statuses_;
  std::string directory_;  // of checkpoints, after every second step
  bool corrupt_ = false;   // a weight of rank 1, after step 1
  bool on_device_ = false;
  // What fails on rank 1's device in this step: of the Ops that computes the
  // gradients, and of the one that exchanges them.
  int64_t fails_in_step_ = -1;
  std::function<void(testing::DeviceLikeOps& computes,
                     testing::DeviceLikeOps& exchanges)>
      fails_;
  std::map<int, Tensors> before_fault_;  // by rank, when that step begins
  int tensor_ranks_ = 1;                 // of a replica; these are its last
  std::atomic<int> waits_ = 0;           // for a bucket of the device
  std::shared_ptr<const CheckpointReader> restore_;  // of step 2
  absl::Mutex mu_;
  std::map<int, v1::CheckpointFile> files_;
  std::vector<std::string> state_names_;
};

TEST_P(AllReduceSynchronizerTest, GivesTheBitsOfAParameterServer) {
  for (int size : {1, 2, 3}) {
    const Tensors expected = OnAServer(size);
    for (UpdateOn on : kEverywhere) {
      SCOPED_TRACE(::testing::Message()
                   << size << " ranks, update on " << static_cast<int>(on));
      for (const Tensors& weights : Run(size, on)) {
        ExpectSameBits(weights, expected);
      }
      for (const absl::Status& status : statuses_) TRIBUTARY_EXPECT_OK(status);
    }
  }
}

// Arrays that pass through host memory are added there, in the same order.
TEST_P(AllReduceSynchronizerTest, GivesTheSameBitsOnADevice) {
  const Tensors expected = OnAServer(3);
  on_device_ = true;
  for (UpdateOn on : kEverywhere) {
    SCOPED_TRACE(static_cast<int>(on));
    directory_ = Path(std::to_string(static_cast<int>(on)));
    waits_ = 0;
    files_.clear();
    for (const Tensors& weights : Run(3, on)) {
      ExpectSameBits(weights, expected);
    }
    for (const absl::Status& status : statuses_) TRIBUTARY_EXPECT_OK(status);
    EXPECT_GE(waits_.load(), 3 * kSteps * 2);  // ranks, steps, buckets
  }
}

// Gradients behind a fault are void: nobody may update with them.
TEST_P(AllReduceSynchronizerTest, ADeviceThatFailsGivesTheOthersNoGradient) {
  on_device_ = true;
  fails_in_step_ = 1;
  for (UpdateOn on : kEverywhere) {
    SCOPED_TRACE(static_cast<int>(on));
    fails_ = [](auto& computes, auto&) { computes.Fail(); };
    const std::vector<Tensors> weights = Run(3, on);
    EXPECT_THAT(statuses_[1], StatusIs(absl::StatusCode::kInternal,
                                       "device: unspecified launch failure"));
    EXPECT_FALSE(statuses_[0].ok());
    EXPECT_FALSE(statuses_[2].ok());
    for (int rank = 0; rank < 3; ++rank) {
      ExpectSameBits(weights[rank], before_fault_[rank]);
    }
  }
}

// The squares that a failed call should have filled are zeros: finite.
TEST_P(AllReduceSynchronizerTest, SquaresThatFailedAreNoReasonToUpdate) {
  on_device_ = true;
  fails_in_step_ = 1;
  // Eight of the gradients; behind them LAMB takes its weights' and
  // directions'.
  const bool is_lamb = GetParam().optimizer.kind == "lamb";
  struct Failure {
    int call;
    bool skip;
  };
  for (const auto& [call, skip] :
       {Failure{1, false}, {1, true}, {is_lamb ? 12 : 1, false}}) {
    SCOPED_TRACE(::testing::Message() << "call " << call << ", skip " << skip);
    fails_ = [nth = call](auto&, auto& exchanges) {
      exchanges.FailGrainSquares(nth);
    };
    const std::vector<Tensors> weights =
        Run(2, UpdateOn::kEveryRank, /*poison=*/false, skip);
    EXPECT_THAT(statuses_[1], StatusIs(absl::StatusCode::kInternal,
                                       "device: unspecified launch failure"));
    ExpectSameBits(weights[1], before_fault_[1]);
  }
}

TEST_P(AllReduceSynchronizerTest, AStepThatIsNotFiniteIsSkippedByAll) {
  const Tensors expected = OnAServer(3, /*skip=*/true);
  for (UpdateOn on : kEverywhere) {
    for (const Tensors& weights : Run(3, on, /*poison=*/true, true)) {
      ExpectSameBits(weights, expected);
    }
  }
}

TEST_P(AllReduceSynchronizerTest, GoesOnFromACheckpointOfEitherKind) {
  const Tensors expected = OnAServer(3);
  for (UpdateOn on : kEverywhere) {
    directory_ = Path(std::to_string(static_cast<int>(on)));
    restore_ = nullptr;
    files_.clear();
    Run(3, on);
    for (const absl::Status& status : statuses_) TRIBUTARY_EXPECT_OK(status);
    ASSERT_EQ(files_.size(), on == UpdateOn::kOwnCut ? 3u : 1u);
    WriteManifestOfStep2();
    auto reader =
        CheckpointReader::Open(directory_ + "/" + CheckpointFolderName(2));
    ASSERT_TRUE(reader.ok()) << reader.status();
    restore_ = *std::move(reader);
    directory_.clear();
    for (UpdateOn again : kEverywhere) {
      for (const Tensors& weights : Run(3, again)) {
        ExpectSameBits(weights, expected);
      }
    }
  }
}

TEST_P(AllReduceSynchronizerTest, ReplicasThatDifferAreNamedAtACheckpoint) {
  directory_ = Path("checkpoints");
  corrupt_ = true;
  Run(3, UpdateOn::kEveryRank);
  for (const absl::Status& status : statuses_) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                                 "after step 2 the weights of rank 1"));
  }
}

// Among replicas of two tensor ranks each: the second of the second is rank 3.
TEST_P(AllReduceSynchronizerTest, ReplicasThatDifferAreNamedAsTheJobDoes) {
  directory_ = Path("checkpoints");
  corrupt_ = true;
  tensor_ranks_ = 2;
  Run(2, UpdateOn::kEveryRank);
  for (const absl::Status& status : statuses_) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                                 "after step 2 the weights of rank 3"));
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kDataLoss, "those of rank 1 "));
  }
}

TEST_P(AllReduceSynchronizerTest, OrFailsAndNamesTheParameter) {
  Run(2, UpdateOn::kEveryRank, /*poison=*/true);
  for (const absl::Status& status : statuses_) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 "the gradient of \"1.weight\" in step 2"));
  }
}

OptimizerOptions Of(const char* kind) {
  OptimizerOptions options;
  options.kind = kind;
  options.weight_decay = 0.01;
  options.epsilon = 1e-6;
  return options;
}

OptimizerOptions DecayingMatrices() {
  OptimizerOptions options = Of("adam");
  options.decay_matrices_only = true;
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, AllReduceSynchronizerTest,
    ::testing::Values(Case{"Sgd", Of("sgd")}, Case{"Adam", Of("adam")},
                      Case{"AdamClipped", Of("adam"), 0.5},
                      Case{"LambClipped", Of("lamb"), 0.5},
                      Case{"AdamThatDecaysMatrices", DecayingMatrices()}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tributary
