// SPDX-License-Identifier: Apache-2.0
#include "worker/data/readers/file_pairs.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/about_field.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

template <typename T>
void Append(const std::vector<T>& more, std::vector<T>* all) {
  all->insert(all->end(), more.begin(), more.end());
}

absl::Status AppendRows(const RawData& more, RawData* all) {
  if (all->rows == 0) {
    *all = more;
    return absl::OkStatus();
  }
  if (more.feature_shape != all->feature_shape ||
      more.targets.width != all->targets.width) {
    return absl::InvalidArgumentError(absl::StrCat(
        more.name, ": samples are ", ShapeText(more.feature_shape), " with ",
        more.targets.width, " targets, but those of ", all->name, " are ",
        ShapeText(all->feature_shape), " with ", all->targets.width));
  }
  if (more.bytes.empty() != all->bytes.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        more.name, ": holds ", more.bytes.empty() ? "numbers" : "bytes",
        ", but ", all->name, " holds ",
        all->bytes.empty() ? "numbers" : "bytes"));
  }
  all->rows += more.rows;
  AddRounding(more.rounding, &all->rounding);
  all->targets.rounding.Add(more.targets.rounding);
  all->targets.Greatest(more.targets.greatest_class,
                        more.targets.greatest_place);
  Append(more.bytes, &all->bytes);
  Append(more.numbers, &all->numbers);
  Append(more.targets.labels, &all->targets.labels);
  Append(more.targets.values, &all->targets.values);
  return absl::OkStatus();
}

// The number of rows before each file, and of all.
absl::StatusOr<std::vector<int64_t>> FirstRows(const InputFiles& samples,
                                               const FilePairFormat& format) {
  std::vector<int64_t> first = {0};
  for (size_t i = 0; i < samples.size(); ++i) {
    TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                               samples.Open(i));
    TRIBUTARY_ASSIGN_OR_RETURN(const int64_t rows,
                               format.count_rows(file.get()));
    int64_t next;
    if (__builtin_add_overflow(first.back(), rows, &next)) {
      return file->Error("more rows than can be counted");
    }
    first.push_back(next);
  }
  return first;
}

}  // namespace

absl::StatusOr<RawData> ReadFilePairs(const InputFiles& samples,
                                      const InputFiles& labels,
                                      const RowRange& range,
                                      const FilePairFormat& format) {
  if (samples.size() != labels.size() || samples.size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        samples.name(), ": wanted one file of labels for each of the ",
        samples.size(), " files, got ", labels.size()));
  }
  const auto read = [&](size_t i,
                        const RowRange& rows) -> absl::StatusOr<RawData> {
    TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> sample_file,
                               samples.Open(i));
    TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> label_file,
                               AboutField(labels.Open(i), "labels"));
    return format.read(sample_file.get(), label_file.get(), rows);
  };
  if (samples.size() == 1) return read(0, range);
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<int64_t> first,
                             FirstRows(samples, format));
  TRIBUTARY_ASSIGN_OR_RETURN(const RowRange rows,
                             ResolveRange(range, first.back(), samples.name()));
  RawData all;
  for (size_t i = 0; i < samples.size(); ++i) {
    const int64_t begin = std::max(rows.first, first[i]);
    const int64_t end = std::min(rows.first + rows.count, first[i + 1]);
    if (begin >= end) continue;
    TRIBUTARY_ASSIGN_OR_RETURN(const RawData part,
                               read(i, {begin - first[i], end - begin}));
    TRIBUTARY_RETURN_IF_ERROR(AppendRows(part, &all));
  }
  return all;
}

}  // namespace tributary
