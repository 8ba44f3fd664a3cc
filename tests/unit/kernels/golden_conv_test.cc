// SPDX-License-Identifier: Apache-2.0
// Every case of the golden group layers_conv (PyTorch in float64), on the CPU
// and on a CUDA device where one answers.
#include <gtest/gtest.h>

#include "kernels/device.h"
#include "tests/gpu/check_arrays.h"
#include "tests/unit/kernels/golden_score.h"
#include "tests/unit/kernels/ops_kinds.h"

namespace tributary::testing {
namespace {

Window WindowOf(const GoldenCase& c, const GoldenTensor& x) {
  const auto pair = [&](const char* key) {
    std::vector<double> numbers = c.Numbers(key);
    if (numbers.empty()) numbers = {1, 1};
    return std::pair(static_cast<int64_t>(numbers[0]),
                     static_cast<int64_t>(numbers[1]));
  };
  Window w;
  w.height = x.shape[2];
  w.width = x.shape[3];
  std::tie(w.kernel_height, w.kernel_width) = pair("kernel");
  std::tie(w.stride_height, w.stride_width) = pair("stride");
  std::tie(w.padding_height, w.padding_width) = pair("pad");
  std::tie(w.dilation_height, w.dilation_width) = pair("dilation");
  return w;
}

std::vector<float> Zeros(const GoldenTensor& like) {
  return std::vector<float>(static_cast<size_t>(like.size()), 0.0f);
}

void CheckConvolution(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const GoldenTensor& weight = c.Tensor("w");
  Convolution convolution;
  convolution.in_channels = c.Tensor("x").shape[1];
  convolution.out_channels = weight.shape[0];
  convolution.groups = static_cast<int64_t>(c.Number("groups", 1));
  convolution.window = WindowOf(c, c.Tensor("x"));
  convolution.window.kernel_height = weight.shape[2];
  convolution.window.kernel_width = weight.shape[3];
  const int64_t rows = c.Tensor("x").shape[0];
  Floats x(ops, c.Tensor("x").Floats()), w(ops, weight.Floats());
  Floats b(ops, c.Tensor("b").Floats()), dy(ops, c.Tensor("dy").Floats());
  Floats y(ops, Zeros(c.Tensor("y"))), dx(ops, Zeros(c.Tensor("x")));
  Floats dw(ops, Zeros(weight)), db(ops, Zeros(c.Tensor("b")));
  Floats scratch(ops,
                 std::vector<float>(ops.ConvolutionScratch(convolution, rows)));
  ops.Convolve(convolution, rows, x.data(), w.data(), b.data(), y.data(),
               scratch.data());
  ops.ConvolveBackward(convolution, rows, x.data(), w.data(), dy.data(),
                       dx.data(), 0, dw.data(), db.data(), scratch.data());
  score.Expect(c, "y", y.Download());
  score.Expect(c, "d_x", dx.Download());
  score.Expect(c, "d_w", dw.Download());
  score.Expect(c, "d_b", db.Download());
  ops.ConvolveBackward(convolution, rows, x.data(), w.data(), dy.data(),
                       nullptr, 1, dw.data(), db.data(), scratch.data());
  std::vector<double> twice = dw.Download();  // added to what stood there
  for (double& element : twice) element /= 2;
  score.Expect(c, "d_w", twice);
}

void CheckMaxPool(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const GoldenTensor& in = c.Tensor("x");
  const Window w = WindowOf(c, in);
  const int64_t planes = in.shape[0] * in.shape[1];
  Floats x(ops, in.Floats()), dy(ops, c.Tensor("dy").Floats());
  Floats y(ops, Zeros(c.Tensor("y"))), dx(ops, Zeros(in));
  DeviceArray<int32_t> argmax(ops,
                              std::vector<int32_t>(c.Tensor("argmax").size()));
  ops.MaxPool(w, planes, x.data(), y.data(), argmax.data());
  ops.MaxPoolBackward(w, planes, dy.data(), argmax.data(), dx.data());
  score.Expect(c, "y", y.Download());
  score.Expect(c, "argmax", argmax.Download());
  score.Expect(c, "d_x", dx.Download());
}

void CheckAveragePool(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const GoldenTensor& in = c.Tensor("x");
  const Window w = WindowOf(c, in);
  const int64_t planes = in.shape[0] * in.shape[1];
  Floats x(ops, in.Floats()), dy(ops, c.Tensor("dy").Floats());
  Floats y(ops, Zeros(c.Tensor("y"))), dx(ops, Zeros(in));
  ops.AveragePool(w, true, planes, x.data(), y.data());
  ops.AveragePoolBackward(w, true, planes, dy.data(), dx.data());
  score.Expect(c, "y", y.Download());
  score.Expect(c, "d_x", dx.Download());
}

class GoldenConvTest : public ::testing::TestWithParam<OpsKind> {};

TEST_P(GoldenConvTest, EveryCaseOfLayersConvIsWithinItsTolerance) {
  std::string why;
  const std::unique_ptr<Ops> ops =
      CreateOps(GetParam().device, &why, 0, GetParam().precision);
  if (ops == nullptr) GTEST_SKIP() << "skipped: no device (" << why << ")";
  GoldenScore score("layers_conv",
                    GetParam().rounds() ? kBfloat16Tolerance : 0);
  for (const auto& [id, golden] : ReadGoldenGroup("layers_conv")) {
    score.BeginCase(id);
    const std::string op = golden.Text("op", "");
    if (op == "conv2d") {
      CheckConvolution(*ops, golden, score);
    } else if (op == "maxpool2d") {
      CheckMaxPool(*ops, golden, score);
    } else {
      ASSERT_EQ(op, "avgpool2d");
      CheckAveragePool(*ops, golden, score);
    }
  }
  EXPECT_EQ(score.cases(), 10);
  if (GetParam().rounds()) {
    EXPECT_GT(score.worst(), 0.1) << "nothing was rounded";
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenConvTest,
                         ::testing::ValuesIn(kAllOpsKinds),
                         [](const auto& info) { return info.param.Name(); });

}  // namespace
}  // namespace tributary::testing
