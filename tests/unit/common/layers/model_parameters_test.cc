// SPDX-License-Identifier: Apache-2.0
#include "common/layers/model_parameters.h"

#include <gtest/gtest.h>

#include "tributary/v1/model.pb.h"

namespace tributary {
namespace {

TEST(ModelParametersTest, NamesCountLayersWithoutParameters) {
  v1::ModelSpec model;
  model.add_sequential()->mutable_flatten();
  v1::LinearSpec* linear = model.add_sequential()->mutable_linear();
  linear->set_in(3);
  linear->set_out(5);
  model.add_sequential()->mutable_layernorm()->set_features(5);
  v1::LinearSpec* last = model.add_sequential()->mutable_linear();
  last->set_in(5);
  last->set_out(2);
  last->set_bias(false);
  EXPECT_EQ(ModelParameters(model), (ParameterSpecs{{"1.weight", {5, 3}},
                                                    {"1.bias", {5}},
                                                    {"2.weight", {5}},
                                                    {"2.bias", {5}},
                                                    {"3.weight", {2, 5}}}));
}

}  // namespace
}  // namespace tributary
