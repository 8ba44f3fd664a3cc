// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/train/model/model_fixture.h"

namespace tributary::testing {
namespace {

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

absl::Status CreateWith(const std::string& layers, const Shape& sample_shape,
                        int64_t max_rows = 4) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  return Model::Create(FromText<v1::ModelSpec>(layers), sample_shape,
                       {.ops = ops.get(), .max_rows = max_rows, .seed = 1})
      .status();
}

TEST(ModelErrorTest, AWrongLinearNamesItsLayerAndBothShapes) {
  EXPECT_THAT(
      CreateWith("sequential { linear { in: 784 out: 256 } }"
                 "sequential { relu {} }"
                 "sequential { linear { in: 128 out: 10 } }",
                 {784}),
      StatusIs(kInvalidArgument,
               "layer 2 (linear): wants samples whose last extent is in = 128, "
               "gets samples of shape [256]"));
  EXPECT_THAT(CreateWith("sequential { linear { in: 784 out: 10 } }", {28, 27}),
              StatusIs(kInvalidArgument,
                       "layer 0 (linear): wants samples whose last "
                       "extent is in = 784, gets samples of shape "
                       "[28, 27]"));
}

TEST(ModelErrorTest, OnlyTheFirstLinearFlattens) {
  EXPECT_THAT(CreateWith("sequential { relu {} }"
                         "sequential { linear { in: 6 out: 2 } }",
                         {2, 3}),
              StatusIs(kInvalidArgument, "layer 1 (linear)"));
}

TEST(ModelErrorTest, AWrongNormOfTheLastExtentNamesItsLayerAndBothShapes) {
  for (const std::string kind : {"layernorm", "rms_norm"}) {
    EXPECT_THAT(
        CreateWith("sequential { linear { in: 4 out: 8 } } sequential "
                   "{ " +
                       kind + " { features: 4 } }",
                   {4}),
        StatusIs(kInvalidArgument, "layer 1 (" + kind +
                                       "): wants samples whose last extent is "
                                       "features = 4, gets samples of shape "
                                       "[8]"));
  }
}

TEST(ModelErrorTest, AWrongGroupNormNamesItsLayerAndWhatItGets) {
  EXPECT_THAT(
      CreateWith("sequential { group_norm { groups: 2 features: 4 } }",
                 {3, 5, 5}),
      StatusIs(kInvalidArgument,
               "layer 0 (group_norm): wants samples of features = 4 channels "
               "or numbers, gets samples of shape [3, 5, 5]"));
  EXPECT_THAT(CreateWith("sequential { group_norm { groups: 3 features: 4 } }",
                         {4, 5, 5}),
              StatusIs(kInvalidArgument,
                       "layer 0 (group_norm): groups must divide features, got "
                       "features 4, groups 3"));
  EXPECT_THAT(CreateWith("sequential { group_norm { features: 4 } }", {4}),
              StatusIs(kInvalidArgument,
                       "layer 0 (group_norm): groups must be at least 1 and at "
                       "most 2147483647, got 0"));
}

TEST(ModelErrorTest, ConstantsOutOfRangeAreRefused) {
  EXPECT_THAT(CreateWith("sequential { linear { in: 4 } }", {4}),
              StatusIs(kInvalidArgument,
                       "layer 0 (linear): out must be at least 1 and at most "
                       "2147483647, got 0"));
  EXPECT_THAT(
      CreateWith("sequential { linear { in: 3000000000 out: 1 } }", {4}),
      StatusIs(kInvalidArgument, "got 3000000000"));
  EXPECT_THAT(CreateWith("sequential { dropout { p: 1 } }", {4}),
              StatusIs(kInvalidArgument,
                       "layer 0 (dropout): p must be at least 0 and "
                       "below 1, got 1"));
  EXPECT_THAT(CreateWith("sequential { dropout { p: nan } }", {4}),
              StatusIs(kInvalidArgument, "layer 0 (dropout)"));
  EXPECT_THAT(
      CreateWith("sequential { layernorm { features: 4 epsilon: 0 } }", {4}),
      StatusIs(kInvalidArgument, "epsilon must be above 0, got 0"));
  EXPECT_THAT(
      CreateWith("sequential { rms_norm { features: 4 epsilon: -1 } }", {4}),
      StatusIs(kInvalidArgument, "epsilon must be above 0, got -1"));
  EXPECT_THAT(CreateWith("sequential {}", {4}),
              StatusIs(kInvalidArgument, "layer 0 (?): has no kind"));
}

TEST(ModelErrorTest, AWrongConvolutionNamesItsLayerAndTheShape) {
  EXPECT_THAT(
      CreateWith("sequential { conv2d { in: 3 out: 4 kernel: 3 } }", {28, 28}),
      StatusIs(kInvalidArgument,
               "layer 0 (conv2d): wants samples of in = 3 channels, gets "
               "samples of shape [28, 28]"));
  EXPECT_THAT(
      CreateWith("sequential { conv2d { in: 1 out: 4 kernel: 9 padding: 1 } }",
                 {6, 28}),
      StatusIs(kInvalidArgument,
               "layer 0 (conv2d): a kernel of 9 x 9 does not fit into 6 x 28 "
               "with padding 1 x 1"));
  EXPECT_THAT(
      CreateWith("sequential { conv2d { in: 1 out: 1000000000 kernel: 1 "
                 "padding: 65536 } }",
                 {28, 28}),
      StatusIs(kInvalidArgument,
               "layer 0 (conv2d): takes arrays of 1.71872e+19 elements for a "
               "sample of 28 x 28, wants at most 2147483647"));
  EXPECT_THAT(
      CreateWith("sequential { linear { in: 28 out: 2147483647 } }", {28, 28}),
      StatusIs(kInvalidArgument,
               "layer 0 (linear): gives 60129542116 numbers a sample"));
  EXPECT_THAT(
      CreateWith("sequential { conv2d { in: 1 out: 4 kernel: 3 } }", {784}),
      StatusIs(kInvalidArgument,
               "wants samples of shape [channels, height, width]"));
}

TEST(ModelErrorTest, ALayerWithinAResidualIsNamedByItsPath) {
  EXPECT_THAT(
      CreateWith("sequential { relu {} } sequential { residual { "
                 "body { linear { in: 4 out: 4 } } "
                 "shortcut { linear { in: 5 out: 4 } } } }",
                 {4}),
      StatusIs(kInvalidArgument,
               "layer 1.shortcut.0 (linear): wants samples whose last extent "
               "is in = 5, gets samples of shape [4]"));
  EXPECT_THAT(CreateWith("sequential { residual { "
                         "body { linear { in: 4 out: 3 } } } }",
                         {4}),
              StatusIs(kInvalidArgument,
                       "layer 0 (residual): its body makes samples of shape "
                       "[3], but its input has [4]"));
}

TEST(ModelErrorTest, TokensAreTakenByTheFirstLayerAlone) {
  EXPECT_THAT(
      CreateWith("sequential { relu {} } "
                 "sequential { embedding { tokens: 3 dim: 2 } }",
                 {4}),
      StatusIs(kInvalidArgument, "layer 1 (embedding): takes token ids"));
  EXPECT_THAT(
      CreateWith("sequential { embedding { tokens: 3 dim: 2 } } "
                 "sequential { position_embedding { length: 3 dim: 2 } }",
                 {4}),
      StatusIs(kInvalidArgument,
               "layer 1 (position_embedding): wants samples of shape "
               "[positions, dim = 2] with at most length = 3 positions, gets "
               "samples of shape [4, 2]"));
  EXPECT_THAT(CreateWith("sequential { linear { in: 4 out: 4 } } "
                         "sequential { tied_linear { to: \"0.weight\" } }",
                         {4}),
              StatusIs(kInvalidArgument, "0.weight is no embedding's weight"));
}

TEST(ModelErrorTest, AModelWithoutParametersIsRefused) {
  EXPECT_THAT(CreateWith("", {4}),
              StatusIs(kInvalidArgument, "at least one layer with parameters"));
  EXPECT_THAT(
      CreateWith("sequential { relu {} } sequential { flatten {} }", {4}),
      StatusIs(kInvalidArgument, "got 2 layers without any"));
}

TEST(ModelErrorTest, AStageWantsLayersThatAreThere) {
  const auto spec = FromText<v1::ModelSpec>(
      "sequential { linear { in: 4 out: 4 } } sequential { relu {} }");
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  for (const auto& [first, end] : {std::pair(0, 3), {1, 1}, {-1, 2}}) {
    EXPECT_THAT(Model::Create(spec, {4},
                              {.ops = ops.get(),
                               .max_rows = 1,
                               .first_layer = first,
                               .end_layer = end}),
                StatusIs(kInvalidArgument,
                         absl::StrCat("a stage wants some of the model's 2 "
                                      "layers, got those from ",
                                      first, " to before ", end)));
  }
}

TEST(ModelErrorTest, EmptySamplesAndBatchesAreRefused) {
  EXPECT_THAT(CreateWith("sequential { linear { in: 4 out: 1 } }", {0}),
              StatusIs(kInvalidArgument, "got 4 samples of shape [0]"));
  EXPECT_THAT(CreateWith("sequential { linear { in: 4 out: 1 } }", {4}, 0),
              StatusIs(kInvalidArgument, "got 0 samples of shape [4]"));
}

TEST(ModelErrorTest, TooLittleMemoryIsAStatus) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer ends the process at a failed new";
#endif
  // 4 * (2^31 - 1)^2 bytes of weights: more than any address space of today.
  EXPECT_THAT(
      CreateWith("sequential { linear { in: 2147483647 out: 2147483647 } }",
                 {2147483647}, 1),
      StatusIs(absl::StatusCode::kResourceExhausted, "no room for"));
}

}  // namespace
}  // namespace tributary::testing
