// SPDX-License-Identifier: Apache-2.0
#include "kernels/batch_norm.h"

#include <vector>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/row_math.h"

namespace tributary {
namespace {

// The sums of a channel have the same order on every device: first each plane,
// then the planes of all rows, both in the order of grain_math.h.

// planes[r, c] = the sum of term(c, i) over the elements i of plane (r, c).
template <typename Term>
TRIBUTARY_INLINE void SumPlanes(const BatchNormShape& s, Term term,
                                double* planes) {
  if (s.pixels == 1) {
    for (int64_t r = 0; r < s.rows; ++r) {
      const int64_t row = r * s.channels;
      TRIBUTARY_IVDEP
      for (int64_t c = 0; c < s.channels; ++c)
        planes[row + c] = term(c, row + c);
    }
    return;
  }
  for (int64_t p = 0; p < s.planes(); ++p) {
    const int64_t c = p % s.channels, first = p * s.pixels;
    planes[p] =
        LaneSum(s.pixels, [=](int64_t i) { return term(c, first + i); });
  }
}

TRIBUTARY_CLONES void PlaneSums(BatchNormShape s, const float* x,
                                double* planes) {
  SumPlanes(
      s, [x](int64_t, int64_t i) { return double{x[i]}; }, planes);
}

TRIBUTARY_CLONES void PlaneSquares(BatchNormShape s, const float* x,
                                   const double* center, double* planes) {
  SumPlanes(
      s,
      [x, center](int64_t c, int64_t i) {
        const double difference = double{x[i]} - center[c];
        return difference * difference;
      },
      planes);
}

// Sums dy xhat over each plane.
TRIBUTARY_CLONES void PlaneProducts(BatchNormShape s, const float* x,
                                    const float* mean, const float* rstd,
                                    const float* dy, double* planes) {
  SumPlanes(
      s,
      [=](int64_t c, int64_t i) {
        return double{dy[i]} * double{(x[i] - mean[c]) * rstd[c]};
      },
      planes);
}

// sums[c] = the sum of planes[r, c] over rows. lanes: scratch, [kSumLanes,
// channels].
TRIBUTARY_CLONES void SumRows(int64_t rows, int64_t channels,
                              const double* planes, double* lanes,
                              double* sums) {
  for (int64_t i = 0; i < kSumLanes * channels; ++i) lanes[i] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const double* from = planes + r * channels;
    double* lane = lanes + r % kSumLanes * channels;
    TRIBUTARY_IVDEP
    for (int64_t c = 0; c < channels; ++c) lane[c] += from[c];
  }
  for (int64_t width = kSumLanes / 2; width > 0; width /= 2) {
    for (int64_t i = 0; i < width * channels; ++i) {
      lanes[i] += lanes[i + width * channels];
    }
  }
  for (int64_t c = 0; c < channels; ++c) sums[c] = lanes[c];
}

TRIBUTARY_CLONES void Normalize(BatchNormShape s, const float* x,
                                const float* gamma, const float* beta,
                                const float* mean, const float* rstd,
                                float* y) {
  if (s.pixels == 1) {
    for (int64_t r = 0; r < s.rows; ++r) {
      const int64_t row = r * s.channels;
      TRIBUTARY_IVDEP
      for (int64_t c = 0; c < s.channels; ++c) {
        y[row + c] =
            LayerNormElement(x[row + c], mean[c], rstd[c], gamma[c], beta[c]);
      }
    }
    return;
  }
  for (int64_t p = 0; p < s.planes(); ++p) {
    const int64_t c = p % s.channels, first = p * s.pixels;
    const float m = mean[c], scale = rstd[c], g = gamma[c], b = beta[c];
    TRIBUTARY_IVDEP
    for (int64_t i = first; i < first + s.pixels; ++i) {
      y[i] = LayerNormElement(x[i], m, scale, g, b);
    }
  }
}

TRIBUTARY_CLONES void Differentiate(BatchNormShape s, const float* x,
                                    const float* gamma, const float* mean,
                                    const float* rstd, const float* dy,
                                    const float* mean_g, const float* mean_gx,
                                    float* dx) {
  if (s.pixels == 1) {
    for (int64_t r = 0; r < s.rows; ++r) {
      const int64_t row = r * s.channels;
      TRIBUTARY_IVDEP
      for (int64_t c = 0; c < s.channels; ++c) {
        dx[row + c] = BatchNormGradient(x[row + c], mean[c], rstd[c], gamma[c],
                                        dy[row + c], mean_g[c], mean_gx[c]);
      }
    }
    return;
  }
  for (int64_t p = 0; p < s.planes(); ++p) {
    const int64_t c = p % s.channels, first = p * s.pixels;
    const float m = mean[c], scale = rstd[c], g = gamma[c];
    const float of_g = mean_g[c], of_gx = mean_gx[c];
    TRIBUTARY_IVDEP
    for (int64_t i = first; i < first + s.pixels; ++i) {
      dx[i] = BatchNormGradient(x[i], m, scale, g, dy[i], of_g, of_gx);
    }
  }
}

// Scratch memory of one call.
struct Sums {
  explicit Sums(const BatchNormShape& s)
      : planes(s.planes()), lanes(kSumLanes * s.channels) {}

  void Add(const BatchNormShape& s, std::vector<double>* sums) {
    sums->resize(s.channels);
    SumRows(s.rows, s.channels, planes.data(), lanes.data(), sums->data());
  }

  std::vector<double> planes, lanes;
};

}  // namespace

void CpuOps::BatchNorm(const BatchNormShape& s, float epsilon, const float* x,
                       const float* gamma, const float* beta, float* y,
                       float* mean, float* rstd, float* variance) {
  if (s.size() == 0) return;
  const double n = static_cast<double>(s.values());
  Sums sums(s);
  std::vector<double> center, squares;
  PlaneSums(s, x, sums.planes.data());
  sums.Add(s, &center);
  for (double& sum : center) sum /= n;
  PlaneSquares(s, x, center.data(), sums.planes.data());
  sums.Add(s, &squares);
  for (int64_t c = 0; c < s.channels; ++c) {
    mean[c] = static_cast<float>(center[c]);
    rstd[c] = BatchNormScale(squares[c] / n, epsilon);
    variance[c] = UnbiasedVariance(squares[c], n);
  }
  Normalize(s, x, gamma, beta, mean, rstd, y);
}

void CpuOps::BatchNormWith(const BatchNormShape& s, float epsilon,
                           const float* x, const float* gamma,
                           const float* beta, const float* mean,
                           const float* variance, float* y) {
  std::vector<float> rstd(s.channels);
  for (int64_t c = 0; c < s.channels; ++c) {
    rstd[c] = BatchNormScale(double{variance[c]}, epsilon);
  }
  Normalize(s, x, gamma, beta, mean, rstd.data(), y);
}

void CpuOps::BatchNormBackward(const BatchNormShape& s, const float* x,
                               const float* gamma, const float* mean,
                               const float* rstd, const float* dy, float keep,
                               float* dx, float* dgamma, float* dbeta) {
  const double n = static_cast<double>(s.values());
  Sums sums(s);
  std::vector<double> of_g, of_gx;
  PlaneSums(s, dy, sums.planes.data());
  sums.Add(s, &of_g);
  PlaneProducts(s, x, mean, rstd, dy, sums.planes.data());
  sums.Add(s, &of_gx);
  std::vector<float> mean_g(s.channels), mean_gx(s.channels);
  for (int64_t c = 0; c < s.channels; ++c) {
    mean_g[c] = static_cast<float>(of_g[c] / n);
    mean_gx[c] = static_cast<float>(of_gx[c] / n);
    dbeta[c] = (keep == 0 ? 0.0f : dbeta[c]) + static_cast<float>(of_g[c]);
    dgamma[c] = (keep == 0 ? 0.0f : dgamma[c]) + static_cast<float>(of_gx[c]);
  }
  if (dx == nullptr) return;
  Differentiate(s, x, gamma, mean, rstd, dy, mean_g.data(), mean_gx.data(), dx);
}

}  // namespace tributary
