// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/train/data/raw_data.h"

namespace tributary {

// The normalization options of the job file.
struct NormalizeOptions {
  std::vector<double> mean;  // one for all, or one per numeric feature
  std::vector<double> std;
  bool standardize = false;  // measure both on the training data

  friend bool operator==(const NormalizeOptions&,
                         const NormalizeOptions&) = default;
};

// x -> (x - mean) / std over the numeric features, in float32, as
// torchvision.transforms.Normalize computes it. Both vectors are empty (x is
// unchanged), or have one value for all or one per numeric feature.
//
// A column far from 0 would lose its differences when its values are rounded to
// float32, so it has an offset: x is the value minus the offset, computed in
// float64 and then rounded. The mean is that of x.
struct Normalization {
  std::vector<float> mean = {};
  std::vector<float> std = {};
  std::vector<double> offsets = {};  // as many as means; empty: all are 0

  bool none() const { return mean.empty(); }
  bool one_pair() const { return mean.size() == 1; }
};

// Resolves the options for data like `train`. InvalidArgument when counts do
// not fit, a std is not positive, or standardize comes with values, and when
// the values of a feature differ by too little for float32 (Rounding::kLeast).
// standardize measures `train`: per feature for flat samples, and one pair over
// all pixels for images (two or more dimensions), because scaling by pixel
// would blow up an edge pixel that is almost always 0. A constant feature keeps
// its scale. The deviation is that of the population (divided by n).
//
// A column has an offset if rounding its values or its mean to float32 would
// change them by more than a small part of the deviation. Rows must be read
// with the offsets of the result. If these are not the offsets of `train`,
// standardize has measured rounded values: read `train` with them and call this
// again.
absl::StatusOr<Normalization> ResolveNormalization(
    const NormalizeOptions& options, const RawData& train);

// The same for `rows` rows, which `parts` visits part by part; `train` has at
// least one of them. Equal rows give the same bits.
absl::StatusOr<Normalization> ResolveNormalization(
    const NormalizeOptions& options, const RawData& train, int64_t rows,
    const RowParts& parts);

}  // namespace tributary
