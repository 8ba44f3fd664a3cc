// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/normalization.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
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

// How far rounding to float32 may move a value, in deviations. A value is moved
// by at most 2^-24 of its size, so a column whose mean is within 64 deviations
// of 0 needs no offset.
constexpr double kMostMoved = 0x1p-18;
// The same limit for the mean, which moves all values alike.
constexpr double kMostMeanMoved = 0x1p-10;

bool WantsOffset(double mean, double deviation, const Rounding& rounding) {
  if (deviation == 0) return rounding.most > 0;
  const double moved = std::min(rounding.most, std::abs(mean) * 0x1p-24);
  return moved > kMostMoved * deviation ||
         std::abs(mean - static_cast<float>(mean)) > kMostMeanMoved * deviation;
}

// Visits the same rows and adds how float32 has rounded each of `series`
// interleaved series.
RowParts WithRounding(const RowParts& parts, std::vector<Rounding>* series) {
  return [&parts, series](const auto& take) {
    return parts([&](const RawData& part) {
      for (size_t i = 0; i < part.rounding.size(); ++i) {
        (*series)[i % series->size()].Add(part.rounding[i]);
      }
      return take(part);
    });
  };
}

// Bytes have no offsets: float32 holds them and their differences exactly.
std::vector<double> OrNone(const RawData& layout, std::vector<double> offsets) {
  const bool none = std::all_of(offsets.begin(), offsets.end(),
                                [](double offset) { return offset == 0; });
  if (none || layout.numbers.empty()) offsets.clear();
  return offsets;
}

// The means and deviations of interleaved series, and how float32 has rounded
// them.
struct Series {
  std::vector<double> mean, deviation;  // a constant series has deviation 0
  std::vector<Rounding> rounding;
};

// Measures `width` series of `size` values together. Uses two passes, because
// one pass loses a small deviation next to a large mean. Notices constant
// series, whose computed deviation would be the rounding error of their mean.
absl::StatusOr<Series> MeasureSeries(int64_t size, int64_t width,
                                     const RowParts& parts) {
  const double count = static_cast<double>(size) / static_cast<double>(width);
  Series series{.mean = std::vector<double>(width),
                .deviation = std::vector<double>(width),
                .rounding = std::vector<Rounding>(width)};
  std::vector<double>& mean = series.mean;
  std::vector<double> square(width), first(width);
  std::vector<bool> varies(width);
  const RowParts counted = WithRounding(parts, &series.rounding);
  TRIBUTARY_RETURN_IF_ERROR(
      ForEachValue(width, counted, [&](int64_t row, int64_t j, double x) {
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
  for (int64_t j = 0; j < width; ++j) {
    if (varies[j]) series.deviation[j] = std::sqrt(square[j] / count);
  }
  return series;
}

// Whether the values of a series of `count` values differ, but by too little
// for float32. `deviation` is that of the rounded values.
bool IsLost(double deviation, const Rounding& rounding, double count) {
  if (deviation > 0) return deviation < Rounding::kLeast;
  // Numbers too small for float64 may differ, although all became one.
  const bool varies =
      rounding.greatest > rounding.least ||
      std::abs(rounding.least) == std::numeric_limits<double>::denorm_min() ||
      static_cast<double>(rounding.count) < count;
  return varies && rounding.is_tiny();
}

// The pairs for series of `count` values each, which were measured on rows with
// layout.offsets. A constant series gets deviation 1. InvalidArgument: the
// differences of a series are too small.
absl::StatusOr<Normalization> MeasuredPairs(const RawData& layout,
                                            const Series& series,
                                            double count) {
  const size_t width = series.mean.size();
  std::vector<double> offsets(width);
  for (size_t j = 0; j < width; ++j) {
    offsets[j] = layout.offset(j);
    if (WantsOffset(series.mean[j], series.deviation[j], series.rounding[j])) {
      offsets[j] += series.mean[j];
    }
    if (offsets[j] == layout.offset(j) &&
        IsLost(series.deviation[j], series.rounding[j], count)) {
      return absl::InvalidArgumentError(absl::StrCat(
          layout.name, ": standardize cannot divide numeric feature ", j,
          " by its deviation, because float32 cannot hold differences of ",
          "numbers below ", Rounding::kLeast,
          "; multiply its numbers by a constant in the file"));
    }
  }
  Normalization result{.offsets = OrNone(layout, offsets)};
  for (size_t j = 0; j < width; ++j) {
    const double more =
        result.offsets.empty() ? 0 : offsets[j] - layout.offset(j);
    const double deviation = series.deviation[j];
    result.mean.push_back(static_cast<float>(series.mean[j] - more));
    result.std.push_back(deviation > 0 ? static_cast<float>(deviation) : 1.0f);
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
  const int64_t width = image ? 1 : row.numeric_width;
  const auto read_with = static_cast<int64_t>(row.offsets.size());
  if (read_with > 1 && read_with != width) {
    return absl::InvalidArgumentError(absl::StrCat(
        row.name,
        ": standardize measures one mean for all features, but the "
        "training source's normalize gives one for each; use the same "
        "normalize in both"));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const Series series,
                             MeasureSeries(size, width, parts));
  return MeasuredPairs(row, series,
                       static_cast<double>(size) / static_cast<double>(width));
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
template <typename T>
std::vector<T> Spread(const std::vector<double>& values, double missing,
                      size_t width) {
  if (values.empty()) return std::vector<T>(width, missing);
  if (values.size() == 1) return std::vector<T>(width, values[0]);
  return std::vector<T>(values.begin(), values.end());
}

// The pairs for given means of the values, for rows that are like `layout`.
Normalization GivenPairs(const RawData& layout, const std::vector<double>& mean,
                         std::vector<float> std) {
  std::vector<double> offsets(mean.size());
  for (size_t j = 0; j < mean.size(); ++j) {
    const bool far = std::abs(mean[j]) * 0x1p-24 > kMostMoved * std[j];
    if (far) offsets[j] = mean[j];
  }
  Normalization result{.std = std::move(std),
                       .offsets = OrNone(layout, offsets)};
  for (size_t j = 0; j < mean.size(); ++j) {
    const double taken = result.offsets.empty() ? 0 : offsets[j];
    result.mean.push_back(static_cast<float>(mean[j] - taken));
  }
  return result;
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
  return GivenPairs(train, Spread<double>(options.mean, 0, width),
                    Spread<float>(options.std, 1, width));
}

}  // namespace tributary
