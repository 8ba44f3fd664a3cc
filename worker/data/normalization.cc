#include "worker/data/normalization.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

// The mean and deviation of `width` interleaved series. value(i) is the i-th of
// `size` values. Uses two passes, because one pass loses a small deviation next
// to a large mean. A constant series gets deviation 1: its computed deviation
// would be only the rounding error of its mean.
template <typename Value>
Normalization MeasureSeries(int64_t size, int64_t width, const Value& value) {
  const double count = static_cast<double>(size) / static_cast<double>(width);
  std::vector<double> mean(width), square(width);
  std::vector<bool> varies(width);
  for (int64_t base = 0; base < size; base += width) {
    for (int64_t j = 0; j < width; ++j) {
      mean[j] += value(base + j);
      if (value(base + j) != value(j)) varies[j] = true;
    }
  }
  for (double& m : mean) m /= count;
  for (int64_t base = 0; base < size; base += width) {
    for (int64_t j = 0; j < width; ++j) {
      const double d = value(base + j) - mean[j];
      square[j] += d * d;
    }
  }
  Normalization result;
  for (int64_t j = 0; j < width; ++j) {
    const double deviation = std::sqrt(square[j] / count);
    result.mean.push_back(static_cast<float>(mean[j]));
    result.std.push_back(varies[j] ? static_cast<float>(deviation) : 1.0f);
  }
  return result;
}

// The same, for all bytes as one series. Counts each byte value first: 60,000
// images have 47 million pixels but only 256 values.
Normalization MeasureBytes(const RawData& data) {
  std::array<int64_t, 256> counts{};
  for (uint8_t byte : data.bytes) ++counts[byte];
  const double count = static_cast<double>(data.bytes.size());
  double mean = 0, square = 0;
  for (int b = 0; b < 256; ++b) mean += counts[b] / count * b;
  for (int b = 0; b < 256; ++b) square += counts[b] * (b - mean) * (b - mean);
  const double scale = 1.0 / data.byte_divisor;
  const double deviation = std::sqrt(square / count);
  const bool varies = counts[data.bytes[0]] < count;
  return {{static_cast<float>(mean * scale)},
          {varies ? static_cast<float>(deviation * scale) : 1.0f}};
}

Normalization Measure(const RawData& data) {
  const bool image = data.feature_shape.size() > 1;
  const bool bytes = data.numbers.empty();
  if (image && bytes) return MeasureBytes(data);
  const int64_t size = data.rows * data.numeric_width;
  const int64_t width = image ? 1 : data.numeric_width;
  if (bytes) {
    return MeasureSeries(size, width, [&](int64_t i) {
      return static_cast<double>(data.bytes[i]) / data.byte_divisor;
    });
  }
  return MeasureSeries(size, width, [&](int64_t i) {
    return static_cast<double>(data.numbers[i]);
  });
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

// Expands `values` (none, one or `width`) to `width` values.
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
    return Measure(train);
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
