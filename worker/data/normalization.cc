// SPDX-License-Identifier: Apache-2.0
#include "worker/data/normalization.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Calls value(row, series, x) for each numeric value x of the rows, in their
// order, where value i belongs to the series i % width.
template <typename Value>
absl::Status ForEachValue(int64_t width, const RowParts& parts,
                          const Value& value) {
  int64_t row = 0, series = 0;
  const auto take = [&](double x) {
    value(row, series, x);
    if (++series < width) return;
    series = 0;
    ++row;
  };
  return parts([&](const RawData& part) {
    for (uint8_t byte : part.bytes) {
      take(static_cast<double>(byte) / part.byte_divisor);
    }
    for (float number : part.numbers) take(static_cast<double>(number));
    return absl::OkStatus();
  });
}

// The mean and deviation of `width` interleaved series of `size` values
// together. Uses two passes, because one pass loses a small deviation next to a
// large mean. A constant series gets deviation 1: its computed deviation would
// be only the rounding error of its mean.
absl::StatusOr<Normalization> MeasureSeries(int64_t size, int64_t width,
                                            const RowParts& parts) {
  const double count = static_cast<double>(size) / static_cast<double>(width);
  std::vector<double> mean(width), square(width), first(width);
  std::vector<bool> varies(width);
  TRIBUTARY_RETURN_IF_ERROR(
      ForEachValue(width, parts, [&](int64_t row, int64_t j, double x) {
        if (row == 0) first[j] = x;
        mean[j] += x;
        if (x != first[j]) varies[j] = true;
      }));
  for (double& m : mean) m /= count;
  TRIBUTARY_RETURN_IF_ERROR(
      ForEachValue(width, parts, [&](int64_t, int64_t j, double x) {
        const double d = x - mean[j];
        square[j] += d * d;
      }));
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
absl::StatusOr<Normalization> MeasureBytes(int64_t size, float divisor,
                                           const RowParts& parts) {
  std::array<int64_t, 256> counts{};
  TRIBUTARY_RETURN_IF_ERROR(parts([&](const RawData& part) {
    for (uint8_t byte : part.bytes) ++counts[byte];
    return absl::OkStatus();
  }));
  const double count = static_cast<double>(size);
  double mean = 0, square = 0;
  int64_t most = 0;
  for (int b = 0; b < 256; ++b) {
    mean += counts[b] / count * b;
    most = std::max(most, counts[b]);
  }
  for (int b = 0; b < 256; ++b) square += counts[b] * (b - mean) * (b - mean);
  const double scale = 1.0 / divisor;
  const double deviation = std::sqrt(square / count);
  return Normalization{
      {static_cast<float>(mean * scale)},
      {most < size ? static_cast<float>(deviation * scale) : 1.0f}};
}

absl::StatusOr<Normalization> Measure(const RawData& row, int64_t rows,
                                      const RowParts& parts) {
  const bool image = row.feature_shape.size() > 1;
  const int64_t size = rows * row.numeric_width;
  if (image && row.numbers.empty()) {
    return MeasureBytes(size, row.byte_divisor, parts);
  }
  return MeasureSeries(size, image ? 1 : row.numeric_width, parts);
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
  return ResolveNormalization(options, train, train.rows, PartsOf(train));
}

absl::StatusOr<Normalization> ResolveNormalization(
    const NormalizeOptions& options, const RawData& train, int64_t rows,
    const RowParts& parts) {
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
    return Measure(train, rows, parts);
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
