// SPDX-License-Identifier: Apache-2.0
// The other operations of a model's step, with the shapes of GPT-2 small (8
// samples of 1024 positions) and of a ResNet's first stage.
#include "kernels/ops.h"
#include "tests/gpu/check_arrays.h"
#include "tests/gpu/speed.h"

namespace tributary::testing {
namespace {

constexpr int64_t kRows = 8192, kDim = 768;

class Streams {
 public:
  Streams(Ops& ops, double ceiling, std::vector<Speed>* speeds)
      : ops_(ops), ceiling_(ceiling), speeds_(*speeds) {}

  // floats: the minimum number that must be read and written.
  void Add(const char* name, double floats, const std::function<void()>& call) {
    speeds_.push_back(
        {name, "GB/s",
         floats * sizeof(float) / SecondsPerCall(ops_, call) / 1e9, ceiling_});
  }

 private:
  Ops& ops_;
  const double ceiling_;
  std::vector<Speed>& speeds_;
};

void AddTransformer(Ops& ops, const SpeedArrays& a, Streams* streams) {
  constexpr double kFloats = double{kRows} * kDim;
  streams->Add("bias, 8192 x 768", 2 * kFloats,
               [&] { ops.AddBias(kRows, kDim, a[1], a[0]); });
  streams->Add("residual sum, 8192 x 768", 3 * kFloats,
               [&] { ops.Add(1, kRows * kDim, a[0], a[1], a[2]); });
  streams->Add("gelu backward, 8192 x 3072", 4 * 3 * kFloats, [&] {
    ops.ActivationBackward(ActivationKind::kGeluErf, kRows * 4 * kDim, a[0],
                           a[1], a[2], a[3]);
  });
  streams->Add("layernorm backward", 3 * kFloats, [&] {
    ops.LayerNormBackward(kRows, kDim, a[0], a[1], a[2], a[3], a[4], a[5],
                          a[1] + kDim, a[1] + 2 * kDim);
  });
  streams->Add("dropout, 8192 x 768", 2 * kFloats, [&] {
    ops.Dropout(kRows, kDim, 0.1f, DropoutKey(), a[0], a[1]);
  });
  streams->Add("column sum, 768 columns", kFloats,
               [&] { ops.ColumnSum(kRows, kDim, a[0], 0, a[1]); });
  const Ids ids(ops, Integers(kRows, 50257, 1));
  streams->Add("embedding, 8192 ids", 2 * kFloats,
               [&] { ops.Embedding(kRows, kDim, ids.data(), a[0], a[1]); });
  streams->Add("embedding backward, 8192 ids", 3 * kFloats, [&] {
    ops.EmbeddingBackward(kRows, kDim, ids.data(), a[0], a[1]);
  });
  const int64_t rows = 1024, classes = 50257;
  const Ids labels(ops, Integers(rows, classes, 2));
  streams->Add("cross entropy, 1024 x 50257", 2.0 * rows * classes, [&] {
    ops.CrossEntropy(rows, classes, a[0], labels.data(), {}, 1e-3f, a[1],
                     nullptr, a[2]);
  });
}

void AddImages(Ops& ops, const SpeedArrays& a, Streams* streams) {
  const BatchNormShape s{128, 64, 56 * 56};
  const auto floats = static_cast<double>(s.size());
  streams->Add("batch norm, 64 x 56 x 56", 2 * floats, [&] {
    ops.BatchNorm(s, 1e-5f, a[0], a[3], a[4], a[1], a[5], a[5] + 64,
                  a[5] + 128);
  });
  streams->Add("batch norm, backward", 3 * floats, [&] {
    ops.BatchNormBackward(s, a[0], a[3], a[4], a[5], a[1], 0, a[2], a[3] + 64,
                          a[3] + 128);
  });
}

}  // namespace

void AddModelSpeeds(Ops& ops, const SpeedArrays& a, double ceiling,
                    std::vector<Speed>* speeds) {
  Streams streams(ops, ceiling, speeds);
  AddTransformer(ops, a, &streams);
  AddImages(ops, a, &streams);
}

}  // namespace tributary::testing
