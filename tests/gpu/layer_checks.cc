// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "tests/gpu/check_arrays.h"

namespace tributary::testing {
namespace {

struct Matrix {
  int64_t rows;
  int64_t cols;
};

// Short, odd, as long as a warp, and long; one row and many rows.
constexpr Matrix kShapes[] = {{1, 1}, {3, 5}, {7, 32}, {130, 10}, {9, 1037}};

std::vector<float> Zeros(int64_t n) {
  return std::vector<float>(static_cast<size_t>(n), 0.0f);
}

// Several MB and an odd number of bytes, so that copies are split into chunks.
Outputs RunCopies(Ops& ops) {
  const int64_t n = (5 << 20) / 4 + 3;
  Floats big(ops, Numbers(n, 1));
  Floats filled(ops, Zeros(1001));
  ops.Fill(1000, 2.5f, filled.data());
  ops.Fill(0, 9.0f, filled.data());
  return {big.Download(), filled.Download()};
}

Outputs RunGemm(Ops& ops, bool transpose_a, bool transpose_b) {
  struct Extents {
    int64_t m, n, k;
  };
  Outputs outputs;
  for (const Extents& e : {Extents{1, 1, 1}, Extents{17, 9, 33},
                           Extents{128, 65, 300}, Extents{6, 7, 0}}) {
    Floats a(ops, Numbers(e.m * e.k, 1));
    Floats b(ops, Numbers(e.k * e.n, 2));
    Floats c(ops, Numbers(e.m * e.n, 3));
    ops.Gemm(transpose_a, transpose_b, e.m, e.n, e.k, 0.5f, a.data(), b.data(),
             1.0f, c.data());
    outputs.push_back(c.Download());
    ops.Gemm(transpose_a, transpose_b, e.m, e.n, e.k, 1.0f, a.data(), b.data(),
             0.0f, c.data());
    outputs.push_back(c.Download());
  }
  return outputs;
}

Outputs RunAddBias(Ops& ops) {
  Outputs outputs;
  for (const Matrix& s : kShapes) {
    Floats bias(ops, Numbers(s.cols, 1));
    Floats y(ops, Numbers(s.rows * s.cols, 2));
    ops.AddBias(s.rows, s.cols, bias.data(), y.data());
    outputs.push_back(y.Download());
  }
  return outputs;
}

Outputs RunColumnSum(Ops& ops) {
  Outputs outputs;
  for (const Matrix& s : kShapes) {
    Floats x(ops, Numbers(s.rows * s.cols, 1));
    Floats out(ops, Numbers(s.cols, 2));
    ops.ColumnSum(s.rows, s.cols, x.data(), 1, out.data());
    outputs.push_back(out.Download());
    ops.ColumnSum(s.rows, s.cols, x.data(), 0, out.data());
    outputs.push_back(out.Download());
  }
  return outputs;
}

// Inputs up to 12 in both directions, beyond the saturation of every
// activation. The middle length is not a multiple of 4, and a shifted start is
// not aligned.
Outputs RunActivation(Ops& ops, ActivationKind kind) {
  Outputs outputs;
  for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{1027}, int64_t{70000}}) {
    std::vector<float> values = Numbers(n + 1, 1);
    for (float& v : values) v *= 12;
    Floats x(ops, values);
    Floats y(ops, Zeros(n + 1));
    Floats dx(ops, Numbers(n + 1, 2));
    for (int64_t shift : {0, 1}) {
      ops.Activation(kind, n, x.data() + shift, y.data() + shift);
      ops.ActivationBackward(kind, n, x.data() + shift, y.data() + shift,
                             dx.data() + shift, dx.data() + shift);
      outputs.push_back(y.Download());
      outputs.push_back(dx.Download());
    }
  }
  return outputs;
}

Outputs RunDropout(Ops& ops) {
  Outputs outputs;
  DropoutKey key{/*seed=*/0x123456789ABCDEF0u, /*step=*/7, /*layer=*/2,
                 /*first_row=*/1, /*row_stride=*/3};
  for (const Matrix& s : kShapes) {
    for (float p : {0.0f, 0.1f, 0.5f, 1.0f}) {
      Floats y(ops, Numbers(s.rows * s.cols, 1));
      ops.Dropout(s.rows, s.cols, p, key, y.data(), y.data());
      outputs.push_back(y.Download());
    }
  }
  // Runs of 7 columns out of every 20, starting at the third.
  key.first_column = 3;
  key.run = 7;
  key.run_stride = 20;
  Floats y(ops, Numbers(5 * 28, 1));
  ops.Dropout(5, 28, 0.5f, key, y.data(), y.data());
  outputs.push_back(y.Download());
  return outputs;
}

Outputs RunSoftmax(Ops& ops) {
  Outputs outputs;
  for (const Matrix& s : kShapes) {
    std::vector<float> values = Numbers(s.rows * s.cols, 1);
    for (float& v : values) v *= 50;
    Floats y(ops, values);
    Floats dx(ops, Numbers(s.rows * s.cols, 2));
    ops.Softmax(s.rows, s.cols, y.data(), y.data());
    ops.SoftmaxBackward(s.rows, s.cols, y.data(), dx.data(), dx.data());
    outputs.push_back(y.Download());
    outputs.push_back(dx.Download());
  }
  return outputs;
}

// The outputs of each row. The gradients of gamma and beta are a separate
// check, because their sums over rows have no fixed order.
// With `rms`, runs RMSNorm.
Outputs RunLayerNorm(Ops& ops, bool rms, bool parameters) {
  Outputs rows, sums;
  for (const Matrix& s : kShapes) {
    std::vector<float> values = Numbers(s.rows * s.cols, 1);
    for (float& v : values) v = v * 3 + 20;
    Floats x(ops, values);
    Floats gamma(ops, Numbers(s.cols, 2)), beta(ops, Numbers(s.cols, 3));
    Floats y(ops, Zeros(s.rows * s.cols));
    Floats mean(ops, Zeros(s.rows)), rstd(ops, Zeros(s.rows));
    Floats dx(ops, Numbers(s.rows * s.cols, 4));
    Floats dgamma(ops, Numbers(s.cols, 5)), dbeta(ops, Numbers(s.cols, 6));
    ops.LayerNorm(s.rows, s.cols, 1e-5f, x.data(), gamma.data(),
                  rms ? nullptr : beta.data(), y.data(),
                  rms ? nullptr : mean.data(), rstd.data());
    ops.LayerNormBackward(s.rows, s.cols, x.data(), gamma.data(),
                          rms ? nullptr : mean.data(), rstd.data(), dx.data(),
                          dx.data(), dgamma.data(),
                          rms ? nullptr : dbeta.data());
    for (const Floats* out : {&y, &mean, &rstd, &dx}) {
      rows.push_back(out->Download());
    }
    sums.push_back(dgamma.Download());
    sums.push_back(dbeta.Download());
  }
  return parameters ? sums : rows;
}

}  // namespace

void AddLayerChecks(std::vector<AgreementCheck>* checks) {
  checks->push_back({"copies and fill", 0, RunCopies});
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      const std::string name =
          std::string("gemm ") + (a ? "T" : "N") + (b ? "T" : "N");
      // TF32 would exceed this 300 times.
      checks->push_back({name, 3e-6,
                         [a, b](Ops& ops) { return RunGemm(ops, a, b); },
                         /*products=*/true});
    }
  }
  checks->push_back({"add bias", 0, RunAddBias});
  checks->push_back({"column sum", 2e-6, RunColumnSum});
  const std::pair<const char*, ActivationKind> activations[] = {
      {"relu", ActivationKind::kRelu},
      {"gelu (erf)", ActivationKind::kGeluErf},
      {"gelu (tanh)", ActivationKind::kGeluTanh},
      {"sigmoid", ActivationKind::kSigmoid},
      {"tanh", ActivationKind::kTanh},
      {"silu", ActivationKind::kSilu}};
  for (const auto& [name, kind] : activations) {
    checks->push_back({name, 0, [kind = kind](Ops& ops) {
                         return RunActivation(ops, kind);
                       }});
  }
  checks->push_back({"dropout", 0, RunDropout});
  checks->push_back({"softmax", 0, RunSoftmax});
  for (const bool rms : {false, true}) {
    const std::string name = rms ? "rms_norm" : "layernorm";
    checks->push_back(
        {name, 0, [rms](Ops& ops) { return RunLayerNorm(ops, rms, false); }});
    checks->push_back({name + " gamma, beta", 2e-6, [rms](Ops& ops) {
                         return RunLayerNorm(ops, rms, true);
                       }});
  }
}

}  // namespace tributary::testing
