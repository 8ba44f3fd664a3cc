// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/parameter_spec.h"
#include "common/optimizer/factored_slice.h"
#include "common/optimizer/optimizer.h"

namespace tributary {

class Ops;

// Adafactor's second moments (Shazeer & Stern 2018, Algorithm 4) for one slice
// of a parameter: the running averages of the mean square of each row and of
// each column. A parameter counts as a matrix of its first dimension by the
// product of the others. A slice keeps the rows that it touches and all
// columns; the processes that hold the other slices compute the same values.
//
// Sums over rows and columns must not depend on how the parameter is split.
// Squares are therefore rounded to multiples of a unit, which makes every sum
// of them exact in double: the order of additions does not matter.
class FactoredMoments {
 public:
  // Elements [begin, end) of the parameter.
  FactoredMoments(const ParameterSpec& parameter, int64_t begin, int64_t end);

  const FactoredSlice& slice() const { return slice_; }
  // Sums of this slice that are exchanged: a value for each of its rows, then
  // one for each column.
  size_t num_sums() const { return rows_.size() + columns_.size(); }
  void AppendSums(Ops& ops, float scale, double unit, const float* gradient,
                  std::vector<double>* sums) const;

  // Moves the averages. totals: the sums of the whole matrix, its rows and then
  // its columns.
  void Update(const OptimizerStep& step, absl::Span<const double> totals);
  // Writes the direction of the slice's elements.
  void MakeDirection(Ops& ops, const OptimizerStep& step, const float* gradient,
                     float* direction) const;

  // A checkpoint holds, for each element, the averages of its row and of its
  // column, so that slices of any other sizes can be filled from it.
  void Expand(float* rows, float* columns) const;
  // rows: one value for each element of the slice. columns: those of the
  // matrix's first row.
  void Restore(const float* rows, absl::Span<const float> columns);

  absl::Span<const float> rows() const { return rows_; }
  absl::Span<const float> columns() const { return columns_; }

 private:
  FactoredSlice slice_;
  int64_t num_rows_ = 0;  // of the matrix
  std::vector<float> rows_;
  std::vector<float> columns_;
};

// The unit to which the squares of a parameter's gradient are rounded, from the
// sum of these squares: a power of two, at most 2^-49 of the sum.
double FactorUnit(double square);

// The number of sums that elements [begin, end) of a parameter exchange; 0: the
// optimizer does not factor the parameter.
int64_t NumFactorSums(const Optimizer& optimizer,
                      const ParameterSpec& parameter, int64_t begin,
                      int64_t end);

// Adds the sums of slices, which cover each factored parameter once:
// [parameter], its rows and then its columns; empty when it is not factored.
struct FactorSums {
  int parameter = 0;
  int64_t begin = 0;
  int64_t end = 0;
  const double* values = nullptr;  // NumFactorSums
};
std::vector<std::vector<double>> AddFactorSums(
    const Optimizer& optimizer, const ParameterSpecs& parameters,
    const std::vector<FactorSums>& slices);

}  // namespace tributary
