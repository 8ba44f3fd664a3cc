// SPDX-License-Identifier: Apache-2.0
#include "worker/data/readers/npy_reader.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/about_field.h"
#include "common/status/status_macros.h"
#include "worker/data/readers/npy_header.h"

namespace tributary {
namespace {

// Calls `take(value)` for each of `count` values of type T, read in pieces.
template <typename T, typename Take>
absl::Status ReadValuesAs(InputFile* file, int64_t count, const Take& take) {
  constexpr int64_t kPiece = 16 << 10;
  std::vector<T> piece(std::min(count, kPiece));
  while (count > 0) {
    const int64_t n = std::min(count, kPiece);
    TRIBUTARY_RETURN_IF_ERROR(
        file->ReadExactly(n * sizeof(T), piece.data(), "NPY data"));
    for (int64_t i = 0; i < n; ++i) {
      TRIBUTARY_RETURN_IF_ERROR(take(static_cast<double>(piece[i])));
    }
    count -= n;
  }
  return absl::OkStatus();
}

template <typename Take>
absl::Status ReadValues(InputFile* file, NpyType type, int64_t count,
                        const Take& take) {
  return VisitNpyType(type, [&](auto value) {
    return ReadValuesAs<decltype(value)>(file, count, take);
  });
}

absl::Status SkipRows(InputFile* file, const NpyHeader& header,
                      const RowRange& range) {
  const int64_t row_size = NumElements(header.shape) / header.shape[0];
  return file->Skip(range.first * row_size * NpyTypeSize(header.type),
                    "NPY data");
}

absl::Status ExpectEnd(InputFile* file, const NpyHeader& header,
                       const RowRange& range) {
  if (range.first + range.count < header.shape[0]) return absl::OkStatus();
  return file->ExpectEnd();
}

absl::Status ReadFeatures(InputFile* file, const NpyHeader& header,
                          const RowRange& range, RawData* data) {
  data->feature_shape.assign(header.shape.begin() + 1, header.shape.end());
  if (data->feature_shape.empty()) data->feature_shape = {1};
  data->numeric_width = NumElements(data->feature_shape);
  const int64_t count = range.count * data->numeric_width;
  TRIBUTARY_RETURN_IF_ERROR(SkipRows(file, header, range));
  if (header.type == NpyType::kUint8 && data->offsets.empty()) {
    data->bytes.resize(count);
    TRIBUTARY_RETURN_IF_ERROR(
        file->ReadExactly(count, data->bytes.data(), "NPY data"));
    return ExpectEnd(file, header, range);
  }
  data->numbers.reserve(count);
  TRIBUTARY_RETURN_IF_ERROR(
      ReadValues(file, header.type, count, [&](double value) {
        if (!std::isfinite(static_cast<float>(value))) {
          const int64_t index = static_cast<int64_t>(data->numbers.size());
          return absl::InvalidArgumentError(absl::StrCat(
              file->name(), ": row ", range.first + index / data->numeric_width,
              ", feature ", index % data->numeric_width,
              ": wanted a finite float32, got ", value));
        }
        data->AppendNumber(value);
        return absl::OkStatus();
      }));
  return ExpectEnd(file, header, range);
}

absl::Status ReadLabels(InputFile* file, const NpyHeader& header,
                        const RowRange& range, Targets* targets) {
  targets->name = file->name();
  targets->width = NumElements(header.shape) / header.shape[0];
  const bool wide =
      header.shape.size() == 2 && targets->kind != TargetKind::kClass;
  if (targets->width != 1 && !wide) {
    return absl::InvalidArgumentError(
        absl::StrCat(file->name(), ": wanted labels of shape [rows], got ",
                     ShapeText(header.shape)));
  }
  TRIBUTARY_RETURN_IF_ERROR(SkipRows(file, header, range));
  const auto place = [&](int64_t index) {
    return absl::StrCat(file->name(), ": row ",
                        range.first + index / targets->width);
  };
  int64_t index = 0;
  TRIBUTARY_RETURN_IF_ERROR(ReadValues(
      file, header.type, range.count * targets->width, [&](double value) {
        const absl::Status status = targets->Append(value);
        if (status.ok()) {
          ++index;
          return status;
        }
        return absl::InvalidArgumentError(
            absl::StrCat(place(index), ": ", status.message()));
      }));
  targets->FindGreatest(place);
  return ExpectEnd(file, header, range);
}

}  // namespace

absl::StatusOr<RawData> ReadNpy(InputFile* features, InputFile* labels,
                                const RowRange& range, TargetKind kind,
                                const std::vector<double>& offsets) {
  TRIBUTARY_ASSIGN_OR_RETURN(const NpyHeader feature_header,
                             ReadNpyHeader(features));
  TRIBUTARY_ASSIGN_OR_RETURN(const NpyHeader label_header,
                             AboutField(ReadNpyHeader(labels), "labels"));
  const int64_t available = feature_header.shape[0];
  if (label_header.shape[0] != available) {
    return absl::InvalidArgumentError(
        absl::StrCat(features->name(), " holds ", available, " rows, but ",
                     labels->name(), " holds ", label_header.shape[0]));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const RowRange rows,
                             ResolveRange(range, available, features->name()));
  RawData data;
  data.name = features->name();
  data.rows = rows.count;
  data.offsets = offsets;
  data.targets.kind = kind;
  TRIBUTARY_RETURN_IF_ERROR(
      ReadFeatures(features, feature_header, rows, &data));
  TRIBUTARY_RETURN_IF_ERROR(AboutField(
      ReadLabels(labels, label_header, rows, &data.targets), "labels"));
  return data;
}

}  // namespace tributary
