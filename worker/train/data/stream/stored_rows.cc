// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/stream/stored_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/status/about_field.h"
#include "common/status/status_macros.h"
#include "worker/train/data/raw_checksum.h"

namespace tributary {
namespace {

constexpr int64_t kPartBytes = 4 << 20;

// Whether float64 holds the value.
template <typename T>
bool IsExact(T value) {
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    // Checks that the bits from the highest 1 to the lowest 1 fit.
    constexpr int kDigits = std::numeric_limits<double>::digits;
    auto bits = static_cast<uint64_t>(value);
    if constexpr (std::is_signed_v<T>) {
      if (value < 0) bits = -bits;
    }
    return bits == 0 ||
           std::bit_width(bits >> std::countr_zero(bits)) <= kDigits;
  }
  return true;
}

// Calls take(value, exact) for each of the values, which are of this type.
// exact: float64 holds the value.
template <typename Take>
absl::Status Decode(NpyType type, absl::Span<const uint8_t> bytes,
                    const Take& take) {
  return VisitNpyType(type, [&](auto value) -> absl::Status {
    for (size_t i = 0; i < bytes.size(); i += sizeof(value)) {
      std::memcpy(&value, bytes.data() + i, sizeof(value));
      TRIBUTARY_RETURN_IF_ERROR(
          take(static_cast<double>(value), IsExact(value)));
    }
    return absl::OkStatus();
  });
}

// Reads the records of these rows, whose values are int32.
absl::Status ReadInts(const StoredRecords& array,
                      absl::Span<const int64_t> rows,
                      std::vector<int32_t>* numbers) {
  numbers->reserve(rows.size() * array.width());
  return array.Read(rows, [&](NpyType, absl::Span<const uint8_t> bytes) {
    const size_t before = numbers->size();
    numbers->resize(before + bytes.size() / sizeof(int32_t));
    std::memcpy(numbers->data() + before, bytes.data(), bytes.size());
    return absl::OkStatus();
  });
}

int64_t CountRows(const StoredRows::Columns& columns) {
  for (const auto* array :
       {&columns.tokens, &columns.targets, &columns.features}) {
    if (array->has_value()) return (*array)->count();
  }
  return 0;
}

}  // namespace

StoredRows::StoredRows(Columns columns)
    : columns_(std::move(columns)), rows_(CountRows(columns_)) {}

absl::StatusOr<RawData> StoredRows::ReadAll(Columns columns) {
  const StoredRows stored(std::move(columns));
  RawData all = stored.columns_.layout;
  const int64_t width = all.numeric_width + all.targets.width;
  TRIBUTARY_RETURN_IF_ERROR(stored.InParts(
      stored.rows_, width * static_cast<int64_t>(sizeof(double)),
      [&stored](absl::Span<const int64_t> rows, RawData* part) {
        return stored.ReadArrays(rows, part);
      },
      [&](const RawData& part, int64_t) {
        AppendRows(part, stored.rows_, &all);
        return absl::OkStatus();
      }));
  return all;
}

absl::StatusOr<std::shared_ptr<const StoredRows>> StoredRows::Create(
    Columns columns) {
  std::shared_ptr<StoredRows> stored(new StoredRows(std::move(columns)));
  if (stored->rows_ == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        stored->columns_.layout.name, ": wanted at least one row, got none"));
  }
  {
    absl::MutexLock lock(&stored->mu_);
    TRIBUTARY_ASSIGN_OR_RETURN(stored->stamps_, stored->ReadStamps());
  }
  TRIBUTARY_ASSIGN_OR_RETURN(stored->first_row_, stored->Read({0}));
  return std::shared_ptr<const StoredRows>(std::move(stored));
}

absl::StatusOr<std::shared_ptr<const StoredRows>> StoredRows::Fill(
    const std::vector<double>& fill) const {
  Columns columns = columns_;
  columns.fill = fill;
  columns.may_miss = !fill.empty();
  return Create(std::move(columns));
}

int64_t StoredRows::row_bytes() const {
  const RawData& row = first_row_;
  return static_cast<int64_t>(
      row.bytes.size() + row.numbers.size() * sizeof(float) +
      row.codes.size() * sizeof(int32_t) + row.tokens.size() * sizeof(int32_t) +
      row.targets.labels.size() * sizeof(int64_t) +
      row.targets.values.size() * sizeof(float));
}

absl::Status StoredRows::ReadFeatures(absl::Span<const int64_t> rows,
                                      RawData* data) const {
  if (!columns_.features.has_value()) return absl::OkStatus();
  const StoredRecords& file = *columns_.features;
  const auto width = static_cast<size_t>(columns_.layout.numeric_width);
  const auto take = [&](double value, bool exact) -> absl::Status {
    const size_t index = data->numbers.size();
    auto number = static_cast<float>(value);
    if (columns_.may_miss && std::isnan(number)) {
      const size_t feature = index % width;
      if (!columns_.fill.empty()) {
        number =
            static_cast<float>(columns_.fill[feature] - data->offset(feature));
      }
    } else if (!std::isfinite(number)) {
      return absl::InvalidArgumentError(absl::StrCat(
          file.Place(rows[index / width]), ", feature ", index % width,
          ": wanted a finite float32, got ", value));
    }
    if (columns_.offsets_are_off) {
      data->numbers.push_back(number);
    } else {
      data->AppendNumber(value, exact);
    }
    return absl::OkStatus();
  };
  const bool as_bytes =
      file.holds_bytes() && data->offsets.empty() && data->byte_divisor != 0;
  if (!as_bytes) data->numbers.reserve(rows.size() * width);
  return file.Read(rows, [&](NpyType type, absl::Span<const uint8_t> bytes) {
    if (!as_bytes) return Decode(type, bytes, take);
    data->bytes.insert(data->bytes.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  });
}

absl::Status StoredRows::ReadCodes(absl::Span<const int64_t> rows,
                                   RawData* data) const {
  if (!columns_.codes.has_value()) return absl::OkStatus();
  TRIBUTARY_RETURN_IF_ERROR(ReadInts(*columns_.codes, rows, &data->codes));
  const size_t width = columns_.code_places.size();
  for (size_t i = 0; i < data->codes.size(); ++i) {
    if (data->codes[i] < 0) continue;  // missing
    data->codes[i] = columns_.code_places[i % width][data->codes[i]];
  }
  return absl::OkStatus();
}

absl::Status StoredRows::ReadTargets(absl::Span<const int64_t> rows,
                                     RawData* data) const {
  if (!columns_.targets.has_value()) return absl::OkStatus();
  const StoredRecords& file = *columns_.targets;
  const auto place = [&](int64_t index) {
    return file.Place(rows[index / data->targets.width]);
  };
  int64_t index = 0;
  const auto take = [&](double value, bool exact) -> absl::Status {
    if (!columns_.target_values.empty()) {
      value = columns_.target_values[static_cast<size_t>(value)];
    }
    const absl::Status status = data->targets.Append(value, exact);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place(index), ": ", status.message()));
    }
    ++index;
    return absl::OkStatus();
  };
  const bool of_table = columns_.layout.targets.name.empty();
  TRIBUTARY_RETURN_IF_ERROR(
      AboutField(file.Read(rows,
                           [&](NpyType type, absl::Span<const uint8_t> bytes) {
                             return Decode(type, bytes, take);
                           }),
                 of_table ? "columns.label" : "labels"));
  // The layout of a table already has the greatest class, with its line.
  data->targets.FindGreatest(place);
  return absl::OkStatus();
}

absl::Status StoredRows::ReadArrays(absl::Span<const int64_t> rows,
                                    RawData* data) const {
  TRIBUTARY_RETURN_IF_ERROR(ReadFeatures(rows, data));
  TRIBUTARY_RETURN_IF_ERROR(ReadCodes(rows, data));
  return ReadTargets(rows, data);
}

absl::StatusOr<RawData> StoredRows::Read(absl::Span<const int64_t> rows) const {
  RawData data = columns_.layout;
  data.rows = static_cast<int64_t>(rows.size());
  if (columns_.tokens.has_value()) {
    // Rows that are read need not be neighbours, so they do not overlap here.
    data.token_stride = data.feature_shape[0] + 1;
    TRIBUTARY_RETURN_IF_ERROR(ReadInts(*columns_.tokens, rows, &data.tokens));
    return data;
  }
  TRIBUTARY_RETURN_IF_ERROR(ReadArrays(rows, &data));
  TRIBUTARY_RETURN_IF_ERROR(CheckUnchanged());
  return data;
}

absl::Status StoredRows::InParts(int64_t count, int64_t bytes_of_one,
                                 const FillPart& fill, const Take& take) const {
  const int64_t most =
      std::max<int64_t>(1, kPartBytes / std::max<int64_t>(1, bytes_of_one));
  std::vector<int64_t> rows;
  for (int64_t first = 0; first < count; first += most) {
    rows.resize(std::min(most, count - first));
    std::iota(rows.begin(), rows.end(), first);
    RawData part = columns_.layout;
    part.rows = static_cast<int64_t>(rows.size());
    TRIBUTARY_RETURN_IF_ERROR(fill(rows, &part));
    TRIBUTARY_RETURN_IF_ERROR(take(part, first));
  }
  return absl::OkStatus();
}

absl::Status StoredRows::ForEachPart(const Take& take) const {
  return InParts(
      rows_, row_bytes(),
      [this](absl::Span<const int64_t> rows, RawData* data) -> absl::Status {
        TRIBUTARY_ASSIGN_OR_RETURN(*data, Read(rows));
        return absl::OkStatus();
      },
      take);
}

absl::StatusOr<std::vector<RandomAccessFile::Stamp>> StoredRows::ReadStamps()
    const {
  std::vector<RandomAccessFile::Stamp> stamps;
  for (const auto* array : {&columns_.features, &columns_.targets}) {
    if (!array->has_value()) continue;
    TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<RandomAccessFile::Stamp> more,
                               (*array)->ReadStamps());
    stamps.insert(stamps.end(), more.begin(), more.end());
  }
  return stamps;
}

absl::Status StoredRows::CheckUnchanged() const {
  TRIBUTARY_ASSIGN_OR_RETURN(std::vector<RandomAccessFile::Stamp> now,
                             ReadStamps());
  absl::MutexLock lock(&mu_);
  if (now == stamps_) return absl::OkStatus();
  if (checksums_.empty()) {
    return absl::DataLossError(absl::StrCat(
        columns_.layout.name,
        " was modified while the job read it for the first time; start the "
        "job again"));
  }
  TRIBUTARY_RETURN_IF_ERROR(Compare(checksums_));
  stamps_ = std::move(now);
  return absl::OkStatus();
}

absl::Status StoredRows::Compare(const std::vector<uint32_t>& checksums) const {
  size_t next = 0;
  return AddAll([&](const StoredRecords& file, int64_t first,
                    const RawData& part, uint32_t so_far) {
           if (so_far == checksums[next++]) return absl::OkStatus();
           return absl::DataLossError(absl::StrCat(
               file.Places(first, first + part.rows - 1),
               " have changed since the job began to read them; start it again "
               "with files that nothing writes to"));
         })
      .status();
}

absl::StatusOr<uint32_t> StoredRows::Checksum(RawData* rounded) const {
  std::vector<uint32_t> checksums;
  TRIBUTARY_ASSIGN_OR_RETURN(
      const uint32_t checksum,
      AddAll([&](const StoredRecords&, int64_t, const RawData& part,
                 uint32_t so_far) {
        checksums.push_back(so_far);
        AddRounding(part.rounding, &rounded->rounding);
        rounded->targets.rounding.Add(part.targets.rounding);
        return absl::OkStatus();
      }));
  TRIBUTARY_RETURN_IF_ERROR(CheckUnchanged());
  absl::MutexLock lock(&mu_);
  checksums_ = std::move(checksums);
  return checksum;
}

absl::StatusOr<uint32_t> StoredRows::AddAll(const AfterPart& after) const {
  RawChecksum checksum;
  // Adds an array, from its first row to its last.
  const auto add = [&](const StoredRecords& array, int64_t bytes_of_one,
                       const FillPart& fill, const auto& array_of) {
    return InParts(array.count(), bytes_of_one, fill,
                   [&](const RawData& part, int64_t first) {
                     checksum.Add(array_of(part));
                     return after(array, first, part, checksum.value());
                   });
  };
  const auto add_features = [&](const auto& array_of) {
    return add(
        *columns_.features, row_bytes(),
        [this](auto rows, RawData* data) { return ReadFeatures(rows, data); },
        array_of);
  };
  const bool bytes = !first_row_.bytes.empty();
  checksum.AddValue(rows_);
  checksum.Add(columns_.layout.feature_shape);
  if (bytes) {
    TRIBUTARY_RETURN_IF_ERROR(add_features(
        [](const RawData& part) -> const auto& { return part.bytes; }));
  }
  checksum.AddValue(columns_.layout.byte_divisor);
  if (!bytes && columns_.features.has_value()) {
    TRIBUTARY_RETURN_IF_ERROR(add_features(
        [](const RawData& part) -> const auto& { return part.numbers; }));
  }
  checksum.Add(columns_.layout.offsets);
  checksum.Add(columns_.layout.code_widths);
  if (columns_.codes.has_value()) {
    TRIBUTARY_RETURN_IF_ERROR(add(
        *columns_.codes, columns_.codes->width() * sizeof(int32_t),
        [this](auto rows, RawData* data) { return ReadCodes(rows, data); },
        [](const RawData& part) -> const auto& { return part.codes; }));
  }
  if (columns_.stream.has_value()) {
    TRIBUTARY_RETURN_IF_ERROR(add(
        *columns_.stream, sizeof(int32_t),
        [this](auto tokens, RawData* data) {
          return ReadInts(*columns_.stream, tokens, &data->tokens);
        },
        [](const RawData& part) -> const auto& { return part.tokens; }));
  }
  checksum.AddValue(columns_.layout.token_stride);
  if (columns_.targets.has_value()) {
    const bool classes = columns_.layout.targets.kind == TargetKind::kClass;
    const FillPart fill = [this](auto rows, RawData* data) {
      return ReadTargets(rows, data);
    };
    const int64_t size = sizeof(int64_t) * columns_.layout.targets.width;
    TRIBUTARY_RETURN_IF_ERROR(classes
                                  ? add(
                                        *columns_.targets, size, fill,
                                        [](const RawData& part) -> const auto& {
                                          return part.targets.labels;
                                        })
                                  : add(
                                        *columns_.targets, size, fill,
                                        [](const RawData& part) -> const auto& {
                                          return part.targets.values;
                                        }));
  }
  return checksum.value();
}

}  // namespace tributary
