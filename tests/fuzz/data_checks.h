// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "worker/train/data/raw_data.h"
#include "worker/train/data/stream/stored_arrays.h"

namespace tributary::fuzz {

inline TargetKind KindOf(uint8_t byte) {
  constexpr TargetKind kKinds[] = {TargetKind::kClass, TargetKind::kBinary,
                                   TargetKind::kReal};
  return kKinds[byte % 3];
}

// Rows [first, first + count) of a file of small numbers; count 0: to the end.
inline RowRange RangeOf(uint8_t byte) {
  return {.first = byte & 7, .count = byte >> 3 & 7};
}

// Checks what every reader promises about its results.
inline void CheckRawData(const RawData& data) {
  int64_t features = data.numeric_width;
  for (int64_t width : data.code_widths) features += width;
  Expect(data.rows >= 1, "there is a row");
  Expect(NumElements(data.feature_shape) == features,
         "the shape has the features");
  const auto numbers = static_cast<size_t>(data.rows * data.numeric_width);
  Expect(data.bytes.size() + data.numbers.size() == numbers,
         "every row has its numbers");
  for (float number : data.numbers) {
    Expect(std::isfinite(number), "numbers are finite");
  }
  const size_t columns = data.code_widths.size();
  Expect(data.codes.size() == data.rows * columns, "every row has its codes");
  for (size_t i = 0; i < data.codes.size(); ++i) {
    Expect(data.codes[i] >= -1 && data.codes[i] < data.code_widths[i % columns],
           "a code lies within its block");
  }
  const Targets& targets = data.targets;
  Expect(targets.kind == TargetKind::kClass
             ? static_cast<int64_t>(targets.labels.size()) == data.rows
             : static_cast<int64_t>(targets.values.size()) ==
                   data.rows * targets.width,
         "every row has its target");
}

template <typename T>
void ExpectSame(const std::vector<T>& all, const std::vector<T>& part,
                size_t begin) {
  Expect(begin + part.size() <= all.size() &&
             std::equal(part.begin(), part.end(), all.begin() + begin),
         "a range of rows is that of the whole file");
}

// `part` was read from the same data as `all`, from row `first` on.
inline void CheckRange(const RawData& all, const RawData& part, int64_t first) {
  const auto row = static_cast<size_t>(first);
  ExpectSame(all.bytes, part.bytes,
             all.bytes.empty() ? 0 : row * all.numeric_width);
  ExpectSame(all.numbers, part.numbers,
             all.numbers.empty() ? 0 : row * all.numeric_width);
  ExpectSame(all.targets.labels, part.targets.labels,
             all.targets.labels.empty() ? 0 : row);
  ExpectSame(all.targets.values, part.targets.values,
             all.targets.values.empty() ? 0 : row * all.targets.width);
}

// Reads two files of a data set, whole and in part. `open(files)` returns their
// StatusOr<StoredRows::Columns>.
template <typename Open>
void CheckTwoFiles(absl::string_view samples, absl::string_view labels,
                   const RowRange& range, TargetKind kind, const Open& open) {
  const auto read = [&](const RowRange& rows) -> absl::StatusOr<RawData> {
    auto columns =
        open({.samples = InputFiles::OverBytes("samples", std::string(samples)),
              .labels = InputFiles::OverBytes("labels", std::string(labels)),
              .range = rows,
              .kind = kind});
    if (!columns.ok()) return columns.status();
    return StoredRows::ReadAll(*std::move(columns));
  };
  const absl::StatusOr<RawData> part = read(range);
  if (part.ok()) CheckRawData(*part);
  const absl::StatusOr<RawData> all = read({});
  if (!all.ok()) return;
  CheckRawData(*all);
  Expect(part.ok() == ResolveRange(range, all->rows, "").ok(),
         "a range of a good file is good when it lies within the file");
  if (part.ok()) CheckRange(*all, *part, range.first);
}

}  // namespace tributary::fuzz
