// SPDX-License-Identifier: Apache-2.0
#include "common/model_record/proto_json.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/testing/status_matchers.h"
#include "tributary/v1/model_record.pb.h"

namespace tributary {
namespace {

using Json = nlohmann::ordered_json;
using testing::StatusIs;

absl::Status ParseProto(const std::string& text,
                        google::protobuf::Message* to) {
  return JsonToProto(Json::parse(text), to);
}

TEST(ProtoJsonTest, LayersAreWrittenInTheWordsOfTheJobFile) {
  v1::LayerSpec layer;
  layer.mutable_linear()->set_in(4);
  layer.mutable_linear()->set_out(2);
  layer.mutable_linear()->set_bias(true);
  EXPECT_EQ(ProtoToJson(layer),
            R"({"linear": {"in": 4, "out": 2, "bias": true}})");
  layer.mutable_relu();
  EXPECT_EQ(ProtoToJson(layer), R"({"relu": {}})");
  layer.mutable_gelu()->set_approximate(v1::GeluSpec::TANH);
  EXPECT_EQ(ProtoToJson(layer), R"({"gelu": {"approximate": "tanh"}})");
}

TEST(ProtoJsonTest, EveryFloatReadsBackToTheSameBits) {
  v1::NumericFeatures written;
  for (float value : {0.1f, 1 / 3.0f, 3.4028235e38f, 1.1754944e-38f, 1e-45f,
                      -16777216.0f, 38.58164978027344f}) {
    written.add_mean(value);
  }
  v1::NumericFeatures read;
  TRIBUTARY_EXPECT_OK(ParseProto(ProtoToJson(written), &read));
  ASSERT_EQ(read.mean_size(), written.mean_size());
  for (int i = 0; i < read.mean_size(); ++i) {
    EXPECT_EQ(read.mean(i), written.mean(i)) << i;
  }
}

TEST(ProtoJsonTest, WordsThatAreNotUtf8ReadBack) {
  v1::CsvCategories written;
  written.add_categories("plain \"quoted\" \n");
  written.add_categories("caf\xE9");
  written.add_categories("caf\xC3\xA9");
  const std::string json = ProtoToJson(written);
  EXPECT_NE(json.find(R"({"hex": "636166e9"})"), std::string::npos) << json;
  v1::CsvCategories read;
  TRIBUTARY_EXPECT_OK(ParseProto(json, &read));
  EXPECT_TRUE(
      google::protobuf::util::MessageDifferencer::Equals(read, written));
}

TEST(ProtoJsonTest, ALongListStaysOnOneLine) {
  v1::TextTokens text;
  for (int i = 0; i < 100; ++i) text.add_vocabulary(i);
  const std::string json = ProtoToJson(text);
  EXPECT_NE(json.find("98, 99]"), std::string::npos) << json;
  EXPECT_EQ(json.find("98,\n"), std::string::npos) << json;
}

TEST(ProtoJsonTest, AWrongValueIsNamedWithItsField) {
  v1::ModelRecord record;
  EXPECT_THAT(
      ParseProto(R"({"sequential": [{"linear": {"in": "x"}}]})", &record),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "sequential.0.linear.in: wants a whole number, got "
               "\"x\""));
  EXPECT_THAT(
      ParseProto(R"({"sequential": [{"linear": {"in": 1.5}}]})", &record),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "wants a whole number, got 1.5"));
  EXPECT_THAT(ParseProto(R"({"sequential": [{"lienar": {}}]})", &record),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "unknown field \"lienar\" in sequential.0"));
  EXPECT_THAT(ParseProto(R"({"sequential": {}})", &record),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "sequential: wants a list, got an object"));
  EXPECT_THAT(ParseProto(R"({"output": "colours"})", &record),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "wants classes, binary or numbers, got \"colours\""));
}

TEST(ProtoJsonTest, TwoMembersOfAOneofAreRefused) {
  v1::LayerSpec layer;
  EXPECT_THAT(ParseProto(R"({"relu": {}, "tanh": {}})", &layer),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the file: wants one kind, got an object"));
}

TEST(ProtoJsonTest, NumbersThatFloat32CannotHoldAreRefused) {
  v1::NumericFeatures numeric;
  for (const char* text :
       {R"({"mean": [1e39]})", R"({"mean": ["nan"]})", R"({"mean": [null]})"}) {
    EXPECT_THAT(ParseProto(text, &numeric),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         "mean.0: wants a number that float32 can hold"))
        << text;
  }
}

TEST(ProtoJsonTest, DeepNestingIsRefusedAndNotFollowed) {
  std::string text = "{\"relu\": {}}";
  for (int i = 0; i < 100000; ++i) {
    text = "{\"residual\": {\"body\": [" + text + "]}}";
    if (text.size() > 200000) break;
  }
  v1::LayerSpec layer;
  EXPECT_THAT(
      ParseProto(text, &layer),
      StatusIs(absl::StatusCode::kInvalidArgument, "wants fewer levels"));
}

}  // namespace
}  // namespace tributary
