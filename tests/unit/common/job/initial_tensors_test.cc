// SPDX-License-Identifier: Apache-2.0
#include "common/job/initial_tensors.h"

#include "common/job/job_file.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;

// "0.weight" [8, 20], "0.bias" [8], "2.weight" [3, 8], "2.bias" [3].
constexpr char kModel[] = R"(
  sequential { linear { in: 20 out: 8 bias: true } }
  sequential { relu {} }
  sequential { linear { in: 8 out: 3 bias: true } }
  initialize_from: "FILE"
)";
const ParameterSpecs kSame = {{"0.weight", {8, 20}},
                              {"0.bias", {8}},
                              {"2.weight", {3, 8}},
                              {"2.bias", {3}}};

absl::StatusOr<std::vector<int>> Match(const std::string& rules,
                                       const ParameterSpecs& tensors) {
  v1::ModelSpec model;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(kModel + rules, &model))
      << rules;
  Places places;
  places.Record("model.initialize_from", "job.yaml:3");
  places.Record("model.initialize_rules", "job.yaml:4");
  places.Record("model.initialize_rules.0.tensors.1", "job.yaml:5");
  places.Record("model.initialize_unused", "job.yaml:6");
  return MatchInitialTensors(places, model, tensors);
}

std::vector<int> Sources(const std::string& rules,
                         const ParameterSpecs& tensors) {
  const auto sources = Match(rules, tensors);
  EXPECT_TRUE(sources.ok()) << sources.status();
  return sources.ok() ? *sources : std::vector<int>();
}

std::string RulesError(const std::string& rules,
                       const ParameterSpecs& tensors) {
  const auto sources = Match(rules, tensors);
  EXPECT_FALSE(sources.ok()) << rules;
  EXPECT_EQ(sources.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(sources.status().message());
}

TEST(InitialTensorsTest, WithoutRulesNamesAndShapesAreTheModels) {
  EXPECT_THAT(Sources("", kSame), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Sources("", {{"2.bias", {3}},
                           {"0.weight", {8, 20}},
                           {"2.weight", {3, 8}},
                           {"0.bias", {8}}}),
              ElementsAre(1, 3, 2, 0));
}

TEST(InitialTensorsTest, ARuleRenamesAndItsStarsStandForTheSame) {
  EXPECT_THAT(Sources(R"(initialize_rules { tensors: "0.*" from: "body.*" }
                         initialize_rules { tensors: "2.weight" from: "w" }
                         initialize_rules { tensors: "*.*" from: "head*:*" })",
                      {{"body.bias", {8}},
                       {"head2:bias", {3}},
                       {"body.weight", {8, 20}},
                       {"w", {3, 8}}}),
              ElementsAre(2, 0, 3, 1));
}

TEST(InitialTensorsTest, TheFirstRuleThatNamesATensorCounts) {
  EXPECT_THAT(Sources(R"(initialize_rules { tensors: "0.*" }
                         initialize_rules { tensors: "*" fresh: true })",
                      {{"0.weight", {8, 20}}, {"0.bias", {8}}}),
              ElementsAre(0, 1, kFromSeed, kFromSeed));
}

TEST(InitialTensorsTest, AFreshTensorReplacesTheFilesOfItsName) {
  ParameterSpecs tensors = kSame;
  tensors[2].shape = {10, 8};
  tensors[3].shape = {10};
  EXPECT_THAT(
      Sources(R"(initialize_rules { tensors: "2.*" fresh: true })", tensors),
      ElementsAre(0, 1, kFromSeed, kFromSeed));
}

TEST(InitialTensorsTest, ATensorOfAsManyElementsIsReshaped) {
  ParameterSpecs tensors = kSame;
  tensors[0].shape = {8, 4, 5};
  EXPECT_THAT(Sources(R"(initialize_rules { tensors: "0.weight" reshape: true
                                            })",
                      tensors),
              ElementsAre(0, 1, 2, 3));
  tensors[0].shape = {8, 4, 6};
  EXPECT_EQ(
      RulesError(R"(initialize_rules { tensors: "0.weight" reshape: true })",
                 tensors),
      "job.yaml:4: model.initialize_rules.0: FILE: wants tensor "
      "\"0.weight\" of shape [8, 20], got [8, 4, 6]; `fresh: true` "
      "starts it from the seed");
}

TEST(InitialTensorsTest, SeveralParametersMayStartFromOneTensor) {
  EXPECT_THAT(Sources(R"(initialize_rules { tensors: "0.bias" from: "b" }
                         initialize_rules { tensors: ["*.weight", "2.*"]
                                            fresh: true })",
                      {{"b", {8}}}),
              ElementsAre(kFromSeed, 0, kFromSeed, kFromSeed));
}

TEST(InitialTensorsTest, UnusedTensorsAreNamed) {
  ParameterSpecs tensors = kSame;
  tensors.push_back({"head.bias", {1}});
  tensors.push_back({"head.weight", {1, 8}});
  EXPECT_THAT(Sources(R"(initialize_unused: "head.*")", tensors),
              ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Sources(R"(initialize_unused: "*")", tensors),
              ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(RulesError("", tensors),
            "job.yaml:3: model.initialize_from: FILE: has a tensor "
            "\"head.bias\" (and 1 more) that the model lacks; name it in "
            "model.initialize_unused, or as `from` in a rule of "
            "model.initialize_rules");
  EXPECT_EQ(RulesError(R"(initialize_unused: ["head.*", "tail.*"])", tensors),
            "job.yaml:6: model.initialize_unused.1: FILE has no tensor of the "
            "name \"tail.*\"");
  EXPECT_EQ(RulesError(R"(initialize_unused: ["*", "head.weigth"])", tensors),
            "job.yaml:6: model.initialize_unused.1: FILE has no tensor of the "
            "name \"head.weigth\"; did you mean \"head.weight\"?");
  EXPECT_EQ(RulesError(R"(initialize_unused: ["*", "0.bias"])", tensors),
            "job.yaml:6: model.initialize_unused.1: the model takes the tensor "
            "\"0.bias\"");
}

TEST(InitialTensorsTest, AMissingTensorIsNamedWithWhatToWrite) {
  EXPECT_EQ(RulesError("", {{"0.weight", {8, 20}}}),
            "job.yaml:3: model.initialize_from: FILE: wants a tensor "
            "\"0.bias\" of shape [8], there is none; give it a rule in "
            "model.initialize_rules, {tensors: \"0.bias\", from: NAME} or "
            "{tensors: \"0.bias\", fresh: true}");
  ParameterSpecs tensors = kSame;
  tensors[1].name = "0.bais";
  EXPECT_EQ(RulesError("", tensors),
            "job.yaml:3: model.initialize_from: FILE: wants a tensor "
            "\"0.bias\" of shape [8], there is none; give it a rule in "
            "model.initialize_rules, {tensors: \"0.bias\", from: \"0.bais\"} "
            "or {tensors: \"0.bias\", fresh: true}");
  EXPECT_EQ(RulesError(R"(initialize_rules { tensors: "0.*" from: "0_*" })",
                       {{"0_weight", {8, 20}}, {"0_bais", {8}}}),
            "job.yaml:4: model.initialize_rules.0.from: FILE has no tensor "
            "\"0_bias\" for \"0.bias\"; did you mean \"0_bais\"?");
}

TEST(InitialTensorsTest, AnotherShapeIsNamedWithWhatToWrite) {
  ParameterSpecs tensors = kSame;
  tensors[0].shape = {20, 8};
  EXPECT_EQ(RulesError("", tensors),
            "job.yaml:3: model.initialize_from: FILE: wants tensor "
            "\"0.weight\" of shape [8, 20], got [20, 8], its transpose; "
            "transpose it in the file");
  tensors[0].shape = {8, 20, 1, 1};
  EXPECT_EQ(RulesError("", tensors),
            "job.yaml:3: model.initialize_from: FILE: wants tensor "
            "\"0.weight\" of shape [8, 20], got [8, 20, 1, 1]; a rule of "
            "model.initialize_rules with `reshape: true` takes its elements in "
            "row-major order");
  tensors[0] = {"a.weight", {7, 20}};
  EXPECT_EQ(RulesError(R"(initialize_rules { tensors: "0.weight"
                                          from: "a.weight" })",
                       tensors),
            "job.yaml:4: model.initialize_rules.0: FILE: wants tensor "
            "\"0.weight\" of shape [8, 20] from \"a.weight\", got [7, 20]; "
            "`fresh: true` starts it from the seed");
}

TEST(InitialTensorsTest, ARuleThatCannotHoldIsRefused) {
  EXPECT_EQ(RulesError(R"(initialize_rules { tensors: "0.*" tensors: "3.*" })",
                       kSame),
            "job.yaml:5: model.initialize_rules.0.tensors.1: no tensor of the "
            "model has the name \"3.*\"");
  EXPECT_EQ(
      RulesError(R"(initialize_rules { tensors: "0.*" tensors: "2.bais" })",
                 kSame),
      "job.yaml:5: model.initialize_rules.0.tensors.1: no tensor of the model "
      "has the name \"2.bais\"; did you mean \"2.bias\"?");
  EXPECT_EQ(RulesError(R"(initialize_rules { tensors: "" })", kSame),
            "job.yaml:4: model.initialize_rules.0.tensors.0 is empty");
  EXPECT_EQ(
      RulesError(R"(initialize_rules { tensors: "2.*" fresh: true from: "a" })",
                 kSame),
      "job.yaml:4: model.initialize_rules.0.fresh and "
      "model.initialize_rules.0.from exclude each other; keep one");
  EXPECT_EQ(RulesError(R"(initialize_rules { tensors: "2.*" fresh: true
                                          reshape: true })",
                       kSame),
            "job.yaml:4: model.initialize_rules.0.fresh and "
            "model.initialize_rules.0.reshape exclude each other; keep one");
  EXPECT_EQ(
      RulesError(R"(initialize_rules { tensors: "2.*" from: "*.*" })", kSame),
      "job.yaml:4: model.initialize_rules.0.from wants as many * as "
      "\"2.*\" has, or none, got \"*.*\"");
}

}  // namespace
}  // namespace tributary
