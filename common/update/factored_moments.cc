// SPDX-License-Identifier: Apache-2.0
#include "common/update/factored_moments.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "kernels/ops.h"

namespace tributary {
namespace {

// A double's mantissa has 53 bits. One is spare because rounding may enlarge
// the sum, and two because the scaled gradient was rounded after its sum was
// taken.
constexpr int kUnitBits = 50;

FactoredSlice SliceOf(const ParameterSpec& parameter, int64_t begin,
                      int64_t end) {
  return {.columns = parameter.size() / parameter.shape[0],
          .begin = begin,
          .size = end - begin};
}

}  // namespace

FactoredMoments::FactoredMoments(const ParameterSpec& parameter, int64_t begin,
                                 int64_t end)
    : slice_(SliceOf(parameter, begin, end)),
      num_rows_(parameter.shape[0]),
      rows_(slice_.rows()),
      columns_(slice_.columns) {}

void FactoredMoments::AppendSums(Ops& ops, float scale, double unit,
                                 const float* gradient,
                                 std::vector<double>* sums) const {
  const size_t at = sums->size();
  sums->resize(at + num_sums());
  ops.FactorSums(slice_, scale, unit, gradient, sums->data() + at);
}

void FactoredMoments::Update(const OptimizerStep& step,
                             absl::Span<const double> totals) {
  const int64_t columns = slice_.columns;
  TRIBUTARY_CHECK(static_cast<int64_t>(totals.size()) == num_rows_ + columns);
  const auto move = [&step](float* average, double sum, int64_t n) {
    const auto mean = static_cast<float>(sum / static_cast<double>(n));
    *average = *average + step.weight2 * (mean - *average);
  };
  for (size_t r = 0; r < rows_.size(); ++r) {
    move(&rows_[r], totals[slice_.first_row() + r], columns);
  }
  for (int64_t c = 0; c < columns; ++c) {
    move(&columns_[c], totals[num_rows_ + c], num_rows_);
  }
}

void FactoredMoments::MakeDirection(Ops& ops, const OptimizerStep& step,
                                    const float* gradient,
                                    float* direction) const {
  // The mean of the rows' averages is that of the columns' averages, all of
  // which every slice has.
  double sum = 0;
  for (float column : columns_) sum += column;
  const auto mean =
      static_cast<float>(sum / static_cast<double>(columns_.size()));
  ops.FactoredDirection(slice_, step, std::max(mean, step.epsilon),
                        rows_.data(), columns_.data(), gradient, direction);
}

void FactoredMoments::Expand(float* rows, float* columns) const {
  for (int64_t i = 0; i < slice_.size; ++i) {
    const int64_t at = slice_.begin + i;
    rows[i] = rows_[at / slice_.columns - slice_.first_row()];
    columns[i] = columns_[at % slice_.columns];
  }
}

void FactoredMoments::Restore(const float* rows,
                              absl::Span<const float> columns) {
  TRIBUTARY_CHECK(columns.size() == columns_.size());
  for (int64_t i = 0; i < slice_.size; ++i) {
    rows_[(slice_.begin + i) / slice_.columns - slice_.first_row()] = rows[i];
  }
  std::copy(columns.begin(), columns.end(), columns_.begin());
}

double FactorUnit(double square) {
  if (square <= 0) return 1;
  return std::ldexp(1.0, std::ilogb(square) + 1 - kUnitBits);
}

int64_t NumFactorSums(const Optimizer& optimizer,
                      const ParameterSpec& parameter, int64_t begin,
                      int64_t end) {
  if (!optimizer.Factors(parameter)) return 0;
  const FactoredSlice slice = SliceOf(parameter, begin, end);
  return slice.rows() + slice.columns;
}

std::vector<std::vector<double>> AddFactorSums(
    const Optimizer& optimizer, const ParameterSpecs& parameters,
    const std::vector<FactorSums>& slices) {
  std::vector<std::vector<double>> totals(parameters.size());
  for (const FactorSums& s : slices) {
    const ParameterSpec& parameter = parameters[s.parameter];
    if (!optimizer.Factors(parameter)) continue;
    const FactoredSlice slice = SliceOf(parameter, s.begin, s.end);
    const int64_t rows = parameter.shape[0];
    std::vector<double>& total = totals[s.parameter];
    total.resize(rows + slice.columns);
    const double* next = s.values;
    for (int64_t r = 0; r < slice.rows(); ++r) {
      total[slice.first_row() + r] += *next++;
    }
    for (int64_t c = 0; c < slice.columns; ++c) total[rows + c] += *next++;
  }
  return totals;
}

}  // namespace tributary
