// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/train/data/stream/stored_arrays.h"
#include "worker/train/predict/inputs/input_rows.h"

namespace tributary {
namespace {

// Rows of IDX or NPY files, with targets from other such files.
class ArrayInput final : public InputRows {
 public:
  explicit ArrayInput(std::shared_ptr<const StoredRows> rows)
      : rows_(std::move(rows)) {}

  absl::StatusOr<RawData> Next(int64_t most) override {
    std::vector<int64_t> rows(std::min(most, rows_->rows() - row_));
    std::iota(rows.begin(), rows.end(), row_);
    row_ += static_cast<int64_t>(rows.size());
    return rows_->Read(rows);
  }

 private:
  const std::shared_ptr<const StoredRows> rows_;
  int64_t row_ = 0;  // the next one
};

InputFiles FilesOf(const std::string& path,
                   const std::vector<std::string>& more) {
  std::vector<std::string> paths = {path};
  paths.insert(paths.end(), more.begin(), more.end());
  return InputFiles(std::move(paths));
}

// Checks that the rows have the shape, the kind of values and the number of
// targets of the training data.
absl::Status CheckRows(const StoredRows::Columns& columns,
                       const v1::Preprocessing& preprocessing) {
  const RawData& layout = columns.layout;
  const Shape wanted = {preprocessing.feature_shape().begin(),
                        preprocessing.feature_shape().end()};
  if (layout.feature_shape != wanted) {
    return absl::InvalidArgumentError(absl::StrCat(
        layout.name, ": samples are ", ShapeText(layout.feature_shape),
        ", but the training data's are ", ShapeText(wanted)));
  }
  const float divisor = preprocessing.numeric().byte_divisor();
  const StoredRecords& features = *columns.features;
  if (divisor != 0 && divisor != 1 &&
      (!features.holds_bytes() || features.holds_booleans())) {
    return absl::InvalidArgumentError(absl::StrCat(
        layout.name, ": wanted bytes (uint8) as in the training data, got ",
        features.holds_booleans() ? "booleans" : "numbers"));
  }
  if (columns.targets &&
      columns.targets->width() != preprocessing.target_width()) {
    return absl::InvalidArgumentError(absl::StrCat(
        layout.targets.name, ": wanted ", preprocessing.target_width(),
        " for each row as in the training data, got ",
        columns.targets->width()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<InputRows>> OpenArrayInput(
    const v1::Preprocessing& preprocessing, const InputOptions& options) {
  if (options.labels && options.labels_path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.path, ": wanted a file with its labels (--labels FILE)"));
  }
  ArrayFiles files{.samples = FilesOf(options.path, options.more_paths),
                   .labels = std::nullopt,
                   .range = options.range};
  if (options.labels) {
    files.labels = FilesOf(options.labels_path, options.more_labels);
  }
  // The pixels of an IDX file are bytes, whose scale in numbers is not known.
  const bool numbers = preprocessing.numeric().byte_divisor() == 0;
  TRIBUTARY_ASSIGN_OR_RETURN(
      StoredRows::Columns columns,
      OpenArrays(files, numbers ? "wanted an NPY file of numbers on the scale "
                                  "of the training data, got the bytes of an "
                                  "IDX file"
                                : ""));
  TRIBUTARY_RETURN_IF_ERROR(CheckRows(columns, preprocessing));
  columns.layout.byte_divisor = preprocessing.numeric().byte_divisor();
  columns.layout.offsets = OffsetsOf(preprocessing);
  Targets targets = EmptyTargets(preprocessing, options);
  targets.name = columns.layout.targets.name;
  columns.layout.targets = std::move(targets);
  TRIBUTARY_ASSIGN_OR_RETURN(std::shared_ptr<const StoredRows> rows,
                             StoredRows::Create(std::move(columns)));
  return std::make_unique<ArrayInput>(std::move(rows));
}

}  // namespace tributary
