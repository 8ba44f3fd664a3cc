// SPDX-License-Identifier: Apache-2.0
// Ranks as threads, against what a parameter server makes of the same
// gradients: the bits must be the same.
#include "worker/rank/parallel/all_reduce_synchronizer.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "common/checkpoint/checkpoint_directory.h"
#include "common/checkpoint/files/folder_name.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/rank/parallel/all_reduce_fixture.h"

namespace tributary {
namespace {

using testing::StatusIs;

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

TEST_P(AllReduceSynchronizerTest, GivesTheSameBitsToPrograms) {
  const Tensors expected = OnAServer(3);
  as_programs_ = true;
  for (UpdateOn on : kEverywhere) {
    for (const Tensors& weights : Run(3, on)) {
      ExpectSameBits(weights, expected);
    }
    for (const absl::Status& status : statuses_) TRIBUTARY_EXPECT_OK(status);
  }
}

// Arrays that pass through host memory are added there, in the same order. The
// model, which has another stream, reads the weights only once they have
// arrived, also after a step without a checkpoint.
TEST_P(AllReduceSynchronizerTest, GivesTheSameBitsOnADevice) {
  const Tensors expected = OnAServer(3);
  on_device_ = true;
  for (UpdateOn on : kEverywhere) {
    for (const bool checkpoints : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "update on " << static_cast<int>(on)
                                        << ", checkpoints " << checkpoints);
      directory_ =
          checkpoints ? Path(std::to_string(static_cast<int>(on))) : "";
      files_.clear();
      for (const Tensors& weights : Run(3, on)) {
        ExpectSameBits(weights, expected);
      }
      for (const absl::Status& status : statuses_) TRIBUTARY_EXPECT_OK(status);
      for (const Overlap& overlap : overlaps_) {
        EXPECT_GE(overlap.waits.load(), kSteps * 2);  // steps, buckets
      }
    }
  }
}

// Gradients after a fault are void: no rank may update with them.
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
  // Eight calls are for the gradients' squares; those for the weights and
  // directions of LAMB follow.
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

// With two tensor ranks a replica, the second rank of the second one is rank 3.
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

// A group with a rate and a decay of its own, and a frozen one that holds a
// running average, too.
std::vector<ParameterGroup> GroupsOf(const char* kind) {
  OptimizerOptions decaying = Of(kind);
  decaying.weight_decay = 0.25;
  const auto rate = [](int64_t step) {
    return 0.02 * static_cast<double>(step + 1);
  };
  return {{.parameters = {"0.*"}, .optimizer = decaying, .learning_rate = rate},
          {.parameters = {"1.running_mean", "2.weight"},
           .optimizer = Of(kind),
           .learning_rate = rate,
           .frozen = true}};
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, AllReduceSynchronizerTest,
    ::testing::Values(Case{"Sgd", Of("sgd")}, Case{"Adam", Of("adam")},
                      Case{"AdamClipped", Of("adam"), 0.5},
                      Case{"LambClipped", Of("lamb"), 0.5},
                      Case{"AdamThatDecaysMatrices", DecayingMatrices()},
                      Case{"SgdInGroups", Of("sgd"), 0, GroupsOf("sgd")},
                      Case{"AdamClippedInGroups", Of("adam"), 0.5,
                           GroupsOf("adam")},
                      Case{"LambInGroups", Of("lamb"), 0, GroupsOf("lamb")},
                      Case{"AdafactorClippedInGroups", Of("adafactor"), 0.5,
                           GroupsOf("adafactor")}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tributary
