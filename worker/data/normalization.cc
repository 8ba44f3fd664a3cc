#include "worker/data/normalization.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

double NumericValue(const RawData& data, int64_t index) {
  if (data.numbers.empty()) return data.bytes[index] / data.byte_divisor;
  return data.numbers[index];
}

// Mean and deviation of each of `width` interleaved series, in two passes:
// one pass loses a small deviation beside a large mean.
Normalization Measure(const RawData& data, int64_t width) {
  const int64_t size = data.rows * data.numeric_width;
  const double count = static_cast<double>(size) / static_cast<double>(width);
  std::vector<double> mean(width), square(width);
  for (int64_t base = 0; base < size; base += width) {
    for (int64_t j = 0; j < width; ++j) mean[j] += NumericValue(data, base + j);
  }
  for (double& m : mean) m /= count;
  for (int64_t base = 0; base < size; base += width) {
    for (int64_t j = 0; j < width; ++j) {
      const double d = NumericValue(data, base + j) - mean[j];
      square[j] += d * d;
    }
  }
  Normalization result;
  for (int64_t j = 0; j < width; ++j) {
    const double deviation = std::sqrt(square[j] / count);
    // What is left of a constant after rounding its mean is not a scale.
    const bool constant = deviation <= 1e-12 * std::abs(mean[j]);
    result.mean.push_back(static_cast<float>(mean[j]));
    result.std.push_back(constant ? 1.0f : static_cast<float>(deviation));
  }
  return result;
}

absl::Status CheckCount(const char* field, size_t count, const RawData& data) {
  if (count <= 1 || count == static_cast<size_t>(data.numeric_width)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(data.name, ": normalize.", field, " has ", count,
                   " values, wanted one for all or one for each of the ",
                   data.numeric_width, " numeric features"));
}

// `values` (none, one or `width`) as `width` values.
std::vector<float> Spread(const std::vector<double>& values, double missing,
                          size_t width) {
  if (values.empty()) return std::vector<float>(width, missing);
  if (values.size() == 1) return std::vector<float>(width, values[0]);
  return std::vector<float>(values.begin(), values.end());
}

}  // namespace

absl::StatusOr<Normalization> ResolveNormalization(
    const NormalizeOptions& options, const RawData& train) {
  const bool given = !options.mean.empty() || !options.std.empty();
  if (options.standardize && given) {
    return absl::InvalidArgumentError(absl::StrCat(
        train.name, ": normalize takes standardize or mean and std, not both"));
  }
  if (!options.standardize && !given) return Normalization{};
  if (train.numeric_width == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        train.name, ": normalize wants numeric features, there are none"));
  }
  if (options.standardize) {
    return Measure(train,
                   train.feature_shape.size() > 1 ? 1 : train.numeric_width);
  }
  for (const auto& [field, values] :
       {std::pair{"mean", &options.mean}, std::pair{"std", &options.std}}) {
    if (absl::Status status = CheckCount(field, values->size(), train);
        !status.ok()) {
      return status;
    }
  }
  for (double value : options.mean) {
    if (!std::isfinite(static_cast<float>(value))) {
      return absl::InvalidArgumentError(absl::StrCat(
          train.name, ": normalize.mean must be finite, got ", value));
    }
  }
  for (double value : options.std) {
    if (!(static_cast<float>(value) > 0) ||
        !std::isfinite(static_cast<float>(value))) {
      return absl::InvalidArgumentError(absl::StrCat(
          train.name, ": normalize.std must be positive, got ", value));
    }
  }
  const size_t width =
      std::max<size_t>(1, std::max(options.mean.size(), options.std.size()));
  return Normalization{Spread(options.mean, 0, width),
                       Spread(options.std, 1, width)};
}

}  // namespace tributary
