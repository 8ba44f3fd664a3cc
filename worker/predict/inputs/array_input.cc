// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/predict/inputs/array_file.h"
#include "worker/predict/inputs/input_rows.h"

namespace tributary {
namespace {

// Rows of an IDX or NPY file, and their targets of another.
class ArrayInput final : public InputRows {
 public:
  ArrayInput(ArrayFile features, std::optional<ArrayFile> labels,
             const v1::Preprocessing& preprocessing,
             const InputOptions& options)
      : features_(std::move(features)),
        labels_(std::move(labels)),
        preprocessing_(preprocessing),
        options_(options) {}

  absl::Status Begin();
  absl::StatusOr<RawData> Next(int64_t most) override;

 private:
  absl::Status CheckShape() const;
  absl::Status CheckLabels() const;
  absl::Status ReadFeatures(int64_t rows, RawData* data);
  absl::Status ReadLabels(int64_t rows, Targets* targets);

  ArrayFile features_;
  std::optional<ArrayFile> labels_;
  const v1::Preprocessing& preprocessing_;
  const InputOptions options_;
  int64_t end_ = 0;  // row after the last one
  std::vector<double> numbers_;
};

Shape ShapeOf(const v1::Preprocessing& preprocessing) {
  return {preprocessing.feature_shape().begin(),
          preprocessing.feature_shape().end()};
}

absl::Status ArrayInput::CheckShape() const {
  if (features_.row_shape() != ShapeOf(preprocessing_)) {
    return absl::InvalidArgumentError(absl::StrCat(
        features_.name(), ": samples are ", ShapeText(features_.row_shape()),
        ", but the training data's are ", ShapeText(ShapeOf(preprocessing_))));
  }
  const float divisor = preprocessing_.numeric().byte_divisor();
  if (divisor != 0 && divisor != 1 && !features_.holds_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat(
        features_.name(),
        ": wanted bytes (uint8) as in the training data, got numbers"));
  }
  return absl::OkStatus();
}

absl::Status ArrayInput::CheckLabels() const {
  if (!labels_) return absl::OkStatus();
  if (labels_->rows() != features_.rows()) {
    return absl::InvalidArgumentError(absl::StrCat(
        features_.name(), " holds ", features_.rows(), " rows, but ",
        labels_->name(), " holds ", labels_->rows()));
  }
  if (labels_->row_size() != preprocessing_.target_width()) {
    return absl::InvalidArgumentError(absl::StrCat(
        labels_->name(), ": wanted ", preprocessing_.target_width(),
        " for each row as in the training data, got ", labels_->row_size()));
  }
  return absl::OkStatus();
}

absl::Status ArrayInput::Begin() {
  TRIBUTARY_RETURN_IF_ERROR(CheckShape());
  TRIBUTARY_RETURN_IF_ERROR(CheckLabels());
  TRIBUTARY_ASSIGN_OR_RETURN(
      const RowRange range,
      ResolveRange(options_.range, features_.rows(), features_.name()));
  end_ = range.first + range.count;
  TRIBUTARY_RETURN_IF_ERROR(features_.SkipRows(range.first));
  return labels_ ? labels_->SkipRows(range.first) : absl::OkStatus();
}

absl::Status ArrayInput::ReadFeatures(int64_t rows, RawData* data) {
  const int64_t first = features_.row();
  const bool bytes =
      preprocessing_.numeric().byte_divisor() != 0 && features_.holds_bytes();
  if (bytes) {
    data->byte_divisor = preprocessing_.numeric().byte_divisor();
    return features_.ReadBytes(rows, &data->bytes);
  }
  TRIBUTARY_RETURN_IF_ERROR(features_.ReadNumbers(rows, &numbers_));
  for (size_t i = 0; i < numbers_.size(); ++i) {
    if (!std::isfinite(static_cast<float>(numbers_[i]))) {
      const auto index = static_cast<int64_t>(i);
      return absl::InvalidArgumentError(absl::StrCat(
          features_.name(), ": row ", first + index / data->numeric_width,
          ", feature ", index % data->numeric_width,
          ": wanted a finite float32, got ", numbers_[i]));
    }
    data->AppendNumber(numbers_[i]);
  }
  return absl::OkStatus();
}

absl::Status ArrayInput::ReadLabels(int64_t rows, Targets* targets) {
  const int64_t first = labels_->row();
  const auto place = [&](int64_t index) {
    return absl::StrCat(labels_->name(), ": row ",
                        first + index / targets->width);
  };
  TRIBUTARY_RETURN_IF_ERROR(labels_->ReadNumbers(rows, &numbers_));
  for (size_t i = 0; i < numbers_.size(); ++i) {
    const absl::Status appended = targets->Append(numbers_[i]);
    if (appended.ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(place(static_cast<int64_t>(i)), ": ",
                     absl::string_view(appended.message())));
  }
  targets->FindGreatest(place);
  return labels_->CheckEnd();
}

absl::StatusOr<RawData> ArrayInput::Next(int64_t most) {
  RawData data;
  data.name = features_.name();
  data.feature_shape = ShapeOf(preprocessing_);
  data.numeric_width = NumElements(data.feature_shape);
  data.offsets = OffsetsOf(preprocessing_);
  data.targets = EmptyTargets(preprocessing_, options_);
  data.rows = std::min(most, end_ - features_.row());
  if (data.rows == 0) return data;
  TRIBUTARY_RETURN_IF_ERROR(ReadFeatures(data.rows, &data));
  TRIBUTARY_RETURN_IF_ERROR(features_.CheckEnd());
  if (labels_) {
    TRIBUTARY_RETURN_IF_ERROR(ReadLabels(data.rows, &data.targets));
  }
  return data;
}

}  // namespace

absl::StatusOr<std::unique_ptr<InputRows>> OpenArrayInput(
    const v1::Preprocessing& preprocessing, const InputOptions& options) {
  TRIBUTARY_ASSIGN_OR_RETURN(ArrayFile features, ArrayFile::Open(options.path));
  std::optional<ArrayFile> labels;
  if (options.labels) {
    if (options.labels_path.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          options.path, ": wanted a file with its labels (--labels FILE)"));
    }
    TRIBUTARY_ASSIGN_OR_RETURN(labels, ArrayFile::Open(options.labels_path));
  }
  auto input = std::make_unique<ArrayInput>(
      std::move(features), std::move(labels), preprocessing, options);
  TRIBUTARY_RETURN_IF_ERROR(input->Begin());
  return input;
}

}  // namespace tributary
