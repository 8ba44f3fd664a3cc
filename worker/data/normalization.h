#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/raw_data.h"

namespace tributary {

// What the job file asks for.
struct NormalizeOptions {
  std::vector<double> mean;  // one for all, or one per numeric feature
  std::vector<double> std;
  bool standardize = false;  // both from the training data

  friend bool operator==(const NormalizeOptions&,
                         const NormalizeOptions&) = default;
};

// x -> (x - mean) / std over the numeric features, in float32 as
// torchvision.transforms.Normalize does it. Both empty: x as it is; else both
// hold one value for all or one per numeric feature.
struct Normalization {
  std::vector<float> mean;
  std::vector<float> std;

  bool none() const { return mean.empty(); }
  bool one_pair() const { return mean.size() == 1; }
};

// Checks the options against the data they will be applied to. InvalidArgument
// when counts do not fit, a std is not positive, or standardize comes with
// values. `train` is where standardize measures: flat samples per feature,
// images (two and more dimensions) with one pair over all pixels, since an edge
// pixel that is almost always 0 would explode. A constant feature keeps its
// scale. The deviation is the population's (over n).
absl::StatusOr<Normalization> ResolveNormalization(
    const NormalizeOptions& options, const RawData& train);

}  // namespace tributary
