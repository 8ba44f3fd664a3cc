// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/planned_checkpoint.h"

#include <limits>
#include <utility>

#include "common/checkpoint/checkpoint_directory.h"
#include "common/checkpoint/manifest.h"
#include "common/plan/model_cut.h"
#include "common/plan/plan_codec.h"
#include "tests/testing/checkpoint/checkpoint_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::CheckpointModel;
using testing::StatusIs;

class PlannedCheckpointTest : public testing::TemporaryFolderTest {
 protected:
  absl::StatusOr<std::unique_ptr<PlannedCheckpoint>> TryOpen(
      const ParameterSpecs& planned,
      const std::vector<std::string>& state_names) const {
    auto reader = CheckpointReader::Open(checkpoint_);
    if (!reader.ok()) return reader.status();
    return PlannedCheckpoint::Create(*std::move(reader), planned, state_names);
  }
  std::unique_ptr<PlannedCheckpoint> Open(const CheckpointModel& model) const {
    auto checkpoint = TryOpen(model.parameters, model.state_names);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return *std::move(checkpoint);
  }

  const CheckpointModel model_ = {};
  const std::string checkpoint_ = Path("step-000000000020");
};

// Every block of the plan for `num_shards` servers holds the model's values.
void ExpectReads(const PlannedCheckpoint& checkpoint,
                 const CheckpointModel& model, int num_shards) {
  const PartitionPlan plan = model.Plan(num_shards);
  for (int shard = 0; shard < num_shards; ++shard) {
    for (const Block& block : plan.blocks(shard)) {
      std::vector<std::vector<float>> tensors(
          3, std::vector<float>(block.size,
                                std::numeric_limits<float>::quiet_NaN()));
      TRIBUTARY_EXPECT_OK(checkpoint.ReadBlock(
          block, tensors[0].data(), {tensors[1].data(), tensors[2].data()}));
      int64_t wrong = 0;
      for (int tensor = 0; tensor < 3; ++tensor) {
        for (const Slice& slice : block.slices) {
          for (int64_t i = 0; i < slice.size(); ++i) {
            wrong += tensors[tensor][slice.offset + i] !=
                     model.Value(tensor, slice.parameter, slice.begin + i);
          }
        }
      }
      EXPECT_EQ(wrong, 0) << "shard " << shard << ", block " << block.index;
    }
  }
}

TEST_F(PlannedCheckpointTest, ACheckpointIsReadOntoAnyNumberOfServers) {
  for (const int written : {1, 2, 3, 5}) {
    TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, written));
    const auto checkpoint = Open(model_);
    for (const int read : {1, 2, 3, 5, 9}) {
      SCOPED_TRACE(::testing::Message() << written << " to " << read);
      ExpectReads(*checkpoint, model_, read);
    }
  }
}

TEST_F(PlannedCheckpointTest, AnOptimizerWithoutStatesNeedsNone) {
  CheckpointModel model;
  model.state_names.clear();
  TRIBUTARY_EXPECT_OK(model.Write(folder(), 20, 2));
  const auto checkpoint = Open(model);
  const PartitionPlan plan = model.Plan(1);
  const Block& block = plan.blocks(0)[0];
  std::vector<float> weights(block.size);
  TRIBUTARY_EXPECT_OK(checkpoint->ReadBlock(block, weights.data(), {}));
  EXPECT_EQ(weights[0], model.Value(0, block.slices[0].parameter, 0));
}

TEST_F(PlannedCheckpointTest, OtherParametersOrStatesDoNotFit) {
  TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 1));
  const auto checkpoint = Open(model_);
  const auto expect = [&](const CheckpointModel& other,
                          const std::string& text) {
    EXPECT_THAT(TryOpen(other.parameters, other.state_names),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         checkpoint_ + ": the checkpoint " + text));
  };
  CheckpointModel other;
  other.parameters[1].shape = {301};
  expect(other, "holds \"0.bias\" [300], wanted \"0.bias\" [301]");
  other = {};
  other.parameters.pop_back();
  expect(other, "holds 5 parameters, wanted 4");
  other = {};
  other.state_names = {"momentum_buffer"};
  expect(other,
         "holds the optimizer states [exp_avg, exp_avg_sq], wanted "
         "[momentum_buffer]");
  const PartitionPlan plan = model_.Plan(1);
  const Block& block = plan.blocks(0)[0];
  std::vector<float> values(block.size);
  EXPECT_THAT(
      checkpoint->ReadBlock(block, values.data(), {values.data()}),
      StatusIs(absl::StatusCode::kFailedPrecondition, "2 optimizer states"));
  Block longer = block;
  longer.slices = {{1, 0, 301, 0}};
  EXPECT_THAT(checkpoint->ReadBlock(longer, values.data(),
                                    {values.data(), values.data()}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "wants elements 0 to 301 of parameter 1"));
}

// The model as `ranks` tensor ranks cut it: one weight by columns in three
// groups (as in attention), one by its inputs; the others stay whole.
ParameterSpecs CutOver(const CheckpointModel& model, int ranks) {
  if (ranks == 1) return model.parameters;
  ParameterSpecs cut;
  for (const ParameterSpec& spec : model.parameters) {
    if (spec.name != "0.weight" && spec.name != "2.weight") {
      cut.push_back(spec);
      continue;
    }
    for (int rank = 0; rank < ranks; ++rank) {
      ParameterSpec slice = {.name = absl::StrCat(spec.name, "@", rank),
                             .holders = {.tensor = rank},
                             .whole_name = spec.name,
                             .whole_shape = spec.shape};
      slice.slice = spec.name == "0.weight"
                        ? ParameterSlice{.dim = 0,
                                         .begin = EvenCut(100, ranks, rank),
                                         .end = EvenCut(100, ranks, rank + 1),
                                         .groups = 3}
                        : ParameterSlice{.dim = 1,
                                         .begin = EvenCut(3200, ranks, rank),
                                         .end = EvenCut(3200, ranks, rank + 1)};
      slice.shape = ShapeOfSlice(spec.shape, slice.slice);
      cut.push_back(std::move(slice));
    }
  }
  return cut;
}

class RecutTest : public PlannedCheckpointTest {
 protected:
  // The model's values, by tensor, then by parameter of `specs`.
  std::vector<Tensors> ValuesOf(const ParameterSpecs& specs) const {
    std::vector<Tensors> values;
    for (int tensor = 0; tensor < 3; ++tensor) {
      Tensors whole;
      for (size_t p = 0; p < model_.parameters.size(); ++p) {
        whole.push_back(model_.Tensor(tensor, static_cast<int>(p)));
      }
      values.push_back(CutWhole(specs, whole));
    }
    return values;
  }

  static std::vector<float> Gathered(const Block& block,
                                     const Tensors& tensors) {
    std::vector<const float*> from;
    for (const std::vector<float>& tensor : tensors) {
      from.push_back(tensor.data());
    }
    std::vector<float> payload(block.size);
    PartitionPlan::Gather(block, from, payload.data());
    return payload;
  }

  void Write(const ParameterSpecs& specs, int num_shards) const {
    const std::vector<Tensors> values = ValuesOf(specs);
    const auto plan = PartitionPlan::Create(specs, num_shards, 64 << 10);
    ASSERT_TRUE(plan.ok()) << plan.status();
    v1::CheckpointManifest manifest = model_.Manifest(20);
    ToProto(specs, manifest.mutable_parameters());
    const auto written = OpenCheckpointFolder(folder(), 20);
    ASSERT_TRUE(written.ok()) << written.status();
    for (int shard = 0; shard < num_shards; ++shard) {
      std::vector<Tensors> payloads;  // by block, then tensor
      std::vector<BlockImage> images;
      for (const Block& block : plan->blocks(shard)) {
        Tensors& payload = payloads.emplace_back();
        for (const Tensors& tensors : values) {
          payload.push_back(Gathered(block, tensors));
        }
        images.push_back({.slices = block.slices,
                          .weights = payload[0].data(),
                          .state = {payload[1].data(), payload[2].data()},
                          .num_elements = block.size});
      }
      const auto file = WriteShardFile(*written,
                                       {{.job_id = model_.job_id,
                                         .shard = shard,
                                         .num_shards = num_shards,
                                         .parameters = specs,
                                         .state_names = model_.state_names},
                                        /*step=*/20},
                                       images);
      ASSERT_TRUE(file.ok()) << file.status();
      *manifest.add_files() = *file;
    }
    TRIBUTARY_EXPECT_OK(WriteManifest(folder(), manifest));
  }

  void ExpectReadsAs(const ParameterSpecs& specs, int num_shards) const {
    const auto checkpoint = TryOpen(specs, model_.state_names);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const std::vector<Tensors> values = ValuesOf(specs);
    const auto plan = PartitionPlan::Create(specs, num_shards, 64 << 10);
    for (int shard = 0; shard < num_shards; ++shard) {
      for (const Block& block : plan->blocks(shard)) {
        Tensors got(3, std::vector<float>(block.size));
        TRIBUTARY_EXPECT_OK((*checkpoint)
                                ->ReadBlock(block, got[0].data(),
                                            {got[1].data(), got[2].data()}));
        for (int tensor = 0; tensor < 3; ++tensor) {
          EXPECT_EQ(got[tensor], Gathered(block, values[tensor]))
              << "tensor " << tensor << ", shard " << shard << ", block "
              << block.index;
        }
      }
    }
  }
};

TEST_F(RecutTest, ACheckpointOfAnyCutIsReadAsAnyOther) {
  for (const int written : {1, 2, 4}) {
    Write(CutOver(model_, written), written);
    for (const int read : {1, 2, 3}) {
      SCOPED_TRACE(::testing::Message() << written << " ranks to " << read);
      ExpectReadsAs(CutOver(model_, read), 3);
    }
    // Compares with the definition of the values, without a cut in between.
    const auto checkpoint = Open(model_);
    for (const int parameter : {0, 2}) {
      std::vector<float> values(1000);
      TRIBUTARY_EXPECT_OK(
          checkpoint->ReadRange(1, parameter, 7000, absl::MakeSpan(values)));
      EXPECT_EQ(values[0], model_.Value(1, parameter, 7000));
      EXPECT_EQ(values[999], model_.Value(1, parameter, 7999));
    }
  }
}

TEST_F(RecutTest, OtherWholesDoNotFitWhateverTheirCut) {
  Write(CutOver(model_, 2), 1);
  CheckpointModel other;
  other.parameters[2].shape = {4, 3204};
  EXPECT_THAT(TryOpen(other.parameters, model_.state_names),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "holds \"2.weight\" [4, 3200], wanted \"2.weight\" "
                       "[4, 3204]"));
  const auto checkpoint = TryOpen(CutOver(model_, 4), model_.state_names);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  std::vector<float> values(10);
  const auto code = [&](int tensor, int parameter, int64_t begin) {
    return (*checkpoint)
        ->ReadRange(tensor, parameter, begin, absl::MakeSpan(values))
        .code();
  };
  EXPECT_EQ(code(0, 0, 7490), absl::StatusCode::kOk);  // of 75 x 100
  EXPECT_EQ(code(0, 0, 7491), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(code(3, 0, 0), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(code(-1, 0, 0), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(code(0, 12, 0), absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace tributary
