// SPDX-License-Identifier: Apache-2.0
// Every case of the golden group layers_norm (PyTorch in float64), on the CPU
// and on a CUDA device where one answers.
#include <gtest/gtest.h>

#include <map>

#include "kernels/device.h"
#include "tests/gpu/check_arrays.h"
#include "tests/unit/kernels/golden_score.h"

namespace tributary::testing {
namespace {

std::vector<float> Zeros(int64_t n) {
  return std::vector<float>(static_cast<size_t>(n), 0.0f);
}

// running + momentum (batch - running), as an update moves it.
std::vector<double> Moved(const std::vector<float>& running, double momentum,
                          const std::vector<double>& batch) {
  std::vector<double> moved;
  for (size_t c = 0; c < running.size(); ++c) {
    moved.push_back(running[c] + momentum * (batch[c] - running[c]));
  }
  return moved;
}

BatchNormShape ShapeOf(const GoldenTensor& in) {
  BatchNormShape s{in.shape[0], in.shape[1]};
  for (size_t d = 2; d < in.shape.size(); ++d) s.pixels *= in.shape[d];
  return s;
}

void CheckBatchNorm(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const GoldenTensor& in = c.Tensor("x");
  const BatchNormShape s = ShapeOf(in);
  const float epsilon = static_cast<float>(c.Number("eps", 0));
  Floats x(ops, in.Floats()), dy(ops, c.Tensor("dy").Floats());
  Floats gamma(ops, c.Tensor("gamma").Floats());
  Floats beta(ops, c.Tensor("beta").Floats());
  Floats y(ops, Zeros(s.size())), dx(ops, Zeros(s.size()));
  Floats mean(ops, Zeros(s.channels)), rstd(ops, Zeros(s.channels));
  Floats variance(ops, Zeros(s.channels));
  Floats d_gamma(ops, Numbers(s.channels, 1));
  Floats d_beta(ops, Numbers(s.channels, 2));
  ops.BatchNorm(s, epsilon, x.data(), gamma.data(), beta.data(), y.data(),
                mean.data(), rstd.data(), variance.data());
  ops.BatchNormBackward(s, x.data(), gamma.data(), mean.data(), rstd.data(),
                        dy.data(), 0, dx.data(), d_gamma.data(), d_beta.data());
  score.Expect(c, "y", y.Download());
  score.Expect(c, "d_x", dx.Download());
  score.Expect(c, "d_gamma", d_gamma.Download());
  score.Expect(c, "d_beta", d_beta.Download());
  const double momentum = c.Number("momentum", 0);
  const std::vector<double> new_mean =
      Moved(c.Tensor("mean").Floats(), momentum, mean.Download());
  const std::vector<double> new_var =
      Moved(c.Tensor("var").Floats(), momentum, variance.Download());
  score.Expect(c, "new_mean", new_mean);
  score.Expect(c, "new_var", new_var);

  // A second pass adds to the gradients of the first.
  ops.BatchNormBackward(s, x.data(), gamma.data(), mean.data(), rstd.data(),
                        dy.data(), 1, nullptr, d_gamma.data(), d_beta.data());
  for (const auto& [name, gradient] :
       {std::pair("d_gamma", &d_gamma), std::pair("d_beta", &d_beta)}) {
    std::vector<double> twice = gradient->Download();
    for (double& element : twice) element /= 2;
    score.Expect(c, name, twice);
  }

  Floats mean_now(ops, {new_mean.begin(), new_mean.end()});
  Floats var_now(ops, {new_var.begin(), new_var.end()});
  ops.BatchNormWith(s, epsilon, x.data(), gamma.data(), beta.data(),
                    mean_now.data(), var_now.data(), y.data());
  score.Expect(c, "y_eval", y.Download());
}

void CheckRmsNorm(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const GoldenTensor& in = c.Tensor("x");
  const int64_t cols = in.shape.back(), rows = in.size() / cols;
  Floats x(ops, in.Floats()), dy(ops, c.Tensor("dy").Floats());
  Floats gamma(ops, c.Tensor("gamma").Floats()), y(ops, Zeros(rows * cols));
  Floats rstd(ops, Zeros(rows)), dx(ops, Zeros(rows * cols));
  Floats d_gamma(ops, Zeros(cols));
  ops.LayerNorm(rows, cols, static_cast<float>(c.Number("eps", 0)), x.data(),
                gamma.data(), nullptr, y.data(), nullptr, rstd.data());
  ops.LayerNormBackward(rows, cols, x.data(), gamma.data(), nullptr,
                        rstd.data(), dy.data(), dx.data(), d_gamma.data(),
                        nullptr);
  score.Expect(c, "y", y.Download());
  score.Expect(c, "d_x", dx.Download());
  score.Expect(c, "d_gamma", d_gamma.Download());
}

void CheckGroupNorm(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const GoldenTensor& in = c.Tensor("x");
  const BatchNormShape s = ShapeOf(in);
  const auto groups = static_cast<int64_t>(c.Number("groups", 0));
  Floats x(ops, in.Floats()), dy(ops, c.Tensor("dy").Floats());
  Floats gamma(ops, c.Tensor("gamma").Floats());
  Floats beta(ops, c.Tensor("beta").Floats()), y(ops, Zeros(s.size()));
  Floats mean(ops, Zeros(s.rows * groups)), rstd(ops, Zeros(s.rows * groups));
  Floats dx(ops, Zeros(s.size()));
  Floats d_gamma(ops, Zeros(s.channels)), d_beta(ops, Zeros(s.channels));
  ops.GroupNorm(s, groups, static_cast<float>(c.Number("eps", 0)), x.data(),
                gamma.data(), beta.data(), y.data(), mean.data(), rstd.data());
  ops.GroupNormBackward(s, groups, x.data(), gamma.data(), mean.data(),
                        rstd.data(), dy.data(), dx.data(), d_gamma.data(),
                        d_beta.data());
  score.Expect(c, "y", y.Download());
  score.Expect(c, "d_x", dx.Download());
  score.Expect(c, "d_gamma", d_gamma.Download());
  score.Expect(c, "d_beta", d_beta.Download());
}

class GoldenNormTest : public ::testing::TestWithParam<DeviceChoice> {};

TEST_P(GoldenNormTest, EveryCase) {
  std::string why;
  const std::unique_ptr<Ops> ops = CreateOps(GetParam(), &why);
  if (ops == nullptr) GTEST_SKIP() << "skipped: no device (" << why << ")";
  const std::map<std::string, void (*)(Ops&, const GoldenCase&, GoldenScore&)>
      checks = {{"batchnorm", CheckBatchNorm},
                {"rmsnorm", CheckRmsNorm},
                {"groupnorm", CheckGroupNorm}};
  GoldenScore score("layers_norm");
  for (const auto& [id, c] : ReadGoldenGroup("layers_norm")) {
    score.BeginCase(id);
    checks.at(c.Text("op", ""))(*ops, c, score);
  }
  EXPECT_TRUE(ops->Synchronize().ok());
  EXPECT_EQ(score.cases(), 16);
}

INSTANTIATE_TEST_SUITE_P(Devices, GoldenNormTest,
                         ::testing::Values(DeviceChoice::kCpu,
                                           DeviceChoice::kCuda),
                         [](const auto& info) -> std::string {
                           return info.param == DeviceChoice::kCpu ? "Cpu"
                                                                   : "Cuda";
                         });

}  // namespace
}  // namespace tributary::testing
