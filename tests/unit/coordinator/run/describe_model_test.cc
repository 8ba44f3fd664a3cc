// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/describe_model.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

v1::DeclareModelRequest Declaration() {
  v1::DeclareModelRequest declaration;
  declaration.set_training_rows(1000);
  declaration.set_data_checksum(0xabcd);
  declaration.mutable_preprocessing()->set_source("csv");
  return declaration;
}

v1::JobSpec Job() {
  v1::JobSpec job;
  job.set_name("adult");
  job.mutable_model()->add_sequential()->mutable_linear()->set_in(3);
  job.mutable_training()->mutable_loss()->mutable_bce_with_logits();
  job.mutable_data()->mutable_train()->mutable_csv()->add_path("/data/a.csv");
  return job;
}

TEST(DescribeModelTest, JoinsTheJobAndTheDeclaration) {
  v1::DeclareModelRequest declaration = Declaration();
  v1::ParameterSpec* weight = declaration.add_parameters();
  weight->set_name("0.weight");
  weight->add_shape(1);
  weight->add_shape(3);
  const v1::ModelRecord model = DescribeModel(Job(), declaration);
  EXPECT_EQ(model.format_version(), 1);
  EXPECT_EQ(model.name(), "adult");
  EXPECT_EQ(model.sequential(0).linear().in(), 3);
  EXPECT_EQ(model.output(), v1::OUTPUT_KIND_BINARY);
  ASSERT_EQ(model.parameters_size(), 1);
  EXPECT_EQ(model.parameters(0).name(), "0.weight");
  EXPECT_EQ(model.preprocessing().source(), "csv");
  EXPECT_EQ(model.training_data().source().csv().path(0), "/data/a.csv");
  EXPECT_EQ(model.training_data().rows(), 1000);
  EXPECT_EQ(model.training_data().checksum(), 0xabcd);
}

TEST(DescribeModelTest, TheWeightsOfTheDataTakeThePlaceOfBalanced) {
  v1::JobSpec job = Job();
  v1::LossSpec* loss = job.mutable_training()->mutable_loss();
  loss->mutable_cross_entropy()->set_label_smoothing(0.25);
  loss->mutable_cross_entropy()->set_balanced(true);
  v1::DeclareModelRequest declaration = Declaration();
  declaration.add_class_weights(0.5);
  declaration.add_class_weights(2);
  const v1::CrossEntropySpec recorded =
      DescribeModel(job, declaration).loss().cross_entropy();
  EXPECT_FALSE(recorded.balanced());
  EXPECT_EQ(recorded.label_smoothing(), 0.25);
  ASSERT_EQ(recorded.class_weights_size(), 2);
  EXPECT_EQ(recorded.class_weights(1), 2);
}

TEST(DescribeModelTest, SlicesOfARankAreOneWholeParameter) {
  v1::DeclareModelRequest declaration = Declaration();
  for (int tensor = 1; tensor <= 2; ++tensor) {
    v1::ParameterSpec* slice = declaration.add_parameters();
    slice->set_name("0.weight.of." + std::to_string(tensor));
    slice->set_tensor(tensor);
    slice->add_shape(2);
    slice->add_shape(3);
    v1::ParameterPart* part = slice->mutable_part();
    part->set_name("0.weight");
    part->add_shape(4);
    part->add_shape(3);
    part->set_begin(tensor == 1 ? 0 : 2);
    part->set_end(tensor == 1 ? 2 : 4);
    part->set_groups(1);
  }
  const v1::ModelRecord model = DescribeModel(Job(), declaration);
  ASSERT_EQ(model.parameters_size(), 1);
  EXPECT_EQ(model.parameters(0).name(), "0.weight");
  EXPECT_EQ(model.parameters(0).shape(0), 4);
}

TEST(DescribeModelTest, AReasonStandsForAMissingPreprocessing) {
  v1::DeclareModelRequest declaration = Declaration();
  declaration.clear_preprocessing();
  declaration.set_no_preprocessing("it is too large");
  const v1::ModelRecord model = DescribeModel(Job(), declaration);
  EXPECT_FALSE(model.has_preprocessing());
  EXPECT_EQ(model.no_preprocessing(), "it is too large");
}

}  // namespace
}  // namespace tributary
