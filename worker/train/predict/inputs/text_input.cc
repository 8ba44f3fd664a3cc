// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/train/predict/inputs/input_rows.h"
#include "worker/train/predict/inputs/known_tokens.h"

namespace tributary {
namespace {

// Samples of a text. With targets, they are the samples that training would
// make of it. Without targets, they follow each other without a gap; the last
// one is moved back so that it ends with the text.
class TextInput final : public InputRows {
 public:
  TextInput(const v1::Preprocessing& preprocessing, const InputOptions& options)
      : preprocessing_(preprocessing),
        options_(options),
        length_(preprocessing.text().length()),
        stride_(options.labels && options.stride > 0 ? options.stride
                                                     : length_) {}

  absl::Status Begin();
  absl::StatusOr<RawData> Next(int64_t most) override;
  Positions last_positions() const override { return last_; }

 private:
  absl::StatusOr<std::unique_ptr<KnownTokens>> OpenReader(size_t file) const;
  absl::StatusOr<int64_t> CountTokens() const;
  // Reads until tokens_ has `count`, or to the end of the part.
  absl::Status Fill(int64_t count);
  absl::Status Drop(int64_t count);
  absl::Status FinishText(RawData* data);

  const v1::Preprocessing& preprocessing_;
  const InputOptions options_;
  const int64_t length_;
  const int64_t stride_;
  size_t file_ = 0;  // of reader_; 0 is options_.path
  std::unique_ptr<KnownTokens> reader_;
  int64_t left_ = std::numeric_limits<int64_t>::max();  // tokens of the part
  bool end_ = false;                                    // of the part
  std::vector<int32_t> tokens_;    // from the next sample on
  std::vector<int32_t> previous_;  // the last sample, without targets
  int64_t row_ = 0;
  Positions last_;
};

absl::StatusOr<std::unique_ptr<KnownTokens>> TextInput::OpenReader(
    size_t file) const {
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<InputFile> opened,
      InputFile::Open(file == 0 ? options_.path
                                : options_.more_paths[file - 1]));
  return std::make_unique<KnownTokens>(std::move(opened),
                                       preprocessing_.text());
}

absl::StatusOr<int64_t> TextInput::CountTokens() const {
  int64_t count = 0;
  for (size_t file = 0; file <= options_.more_paths.size(); ++file) {
    TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<KnownTokens> reader,
                               OpenReader(file));
    while (true) {
      TRIBUTARY_ASSIGN_OR_RETURN(const int32_t id, reader->Next());
      if (id < 0) break;
      ++count;
    }
  }
  return count;
}

absl::Status TextInput::Begin() {
  TRIBUTARY_ASSIGN_OR_RETURN(reader_, OpenReader(0));
  if (options_.begin > 0 || options_.end < 1) {
    TRIBUTARY_ASSIGN_OR_RETURN(const int64_t count, CountTokens());
    const auto all = static_cast<double>(count);
    const auto first = static_cast<int64_t>(std::floor(options_.begin * all));
    left_ = static_cast<int64_t>(std::floor(options_.end * all));
    TRIBUTARY_RETURN_IF_ERROR(Drop(first));
  }
  TRIBUTARY_RETURN_IF_ERROR(Drop(options_.range.first * stride_));
  TRIBUTARY_RETURN_IF_ERROR(Fill(length_ + 1));
  const auto size = static_cast<int64_t>(tokens_.size());
  const int64_t wanted = options_.labels    ? length_ + 1
                         : options_.may_pad ? 1
                                            : length_;
  if (size >= wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      options_.path, ": wanted at least ", wanted, " tokens, got ", size));
}

absl::Status TextInput::Fill(int64_t count) {
  while (!end_ && static_cast<int64_t>(tokens_.size()) < count) {
    if (left_ == 0) {
      end_ = true;
      break;
    }
    TRIBUTARY_ASSIGN_OR_RETURN(const int32_t id, reader_->Next());
    if (id >= 0) {
      tokens_.push_back(id);
      --left_;
    } else if (file_ < options_.more_paths.size()) {
      TRIBUTARY_ASSIGN_OR_RETURN(reader_, OpenReader(++file_));
    } else {
      end_ = true;
    }
  }
  return absl::OkStatus();
}

absl::Status TextInput::Drop(int64_t count) {
  while (count > 0) {
    TRIBUTARY_RETURN_IF_ERROR(Fill(1));
    if (tokens_.empty()) return absl::OkStatus();
    const int64_t now = std::min(count, static_cast<int64_t>(tokens_.size()));
    tokens_.erase(tokens_.begin(), tokens_.begin() + now);
    count -= now;
  }
  return absl::OkStatus();
}

// Makes the last sample if the text's length is not a multiple of length_: from
// the last length_ tokens, or from all tokens and padding.
absl::Status TextInput::FinishText(RawData* data) {
  const auto rest = static_cast<int64_t>(tokens_.size());
  std::vector<int32_t> sample = previous_;
  sample.insert(sample.end(), tokens_.begin(), tokens_.end());
  tokens_.clear();
  if (previous_.empty()) {
    last_ = {.begin = 0, .end = rest};
    sample.resize(length_, 0);
  } else {
    last_ = {.begin = length_ - rest, .end = length_};
    sample.erase(sample.begin(), sample.end() - length_);
  }
  data->rows = 1;
  data->tokens = std::move(sample);
  data->tokens.push_back(0);  // in the place of the last target
  return absl::OkStatus();
}

absl::StatusOr<RawData> TextInput::Next(int64_t most) {
  RawData data;
  data.name = options_.path;
  data.feature_shape = {length_};
  data.token_stride = stride_;
  data.num_tokens = preprocessing_.text().vocabulary_size();
  data.targets.kind = TargetKind::kClass;
  data.targets.width = length_;
  last_ = {};
  if (options_.range.count > 0) {
    most = std::min(most, options_.range.count - row_);
  }
  if (most == 0) return data;
  const int64_t target = options_.labels ? 1 : 0;
  TRIBUTARY_RETURN_IF_ERROR(Fill((most - 1) * stride_ + length_ + target));
  const auto size = static_cast<int64_t>(tokens_.size());
  if (size < length_ + target) {
    if (options_.labels || size == 0) return data;
    TRIBUTARY_RETURN_IF_ERROR(FinishText(&data));
    return data;
  }
  data.rows = std::min(most, (size - length_ - target) / stride_ + 1);
  const int64_t used = (data.rows - 1) * stride_ + length_ + target;
  data.tokens.assign(tokens_.begin(), tokens_.begin() + used);
  row_ += data.rows;
  if (!options_.labels) {
    previous_.assign(data.tokens.end() - length_, data.tokens.end());
    data.tokens.push_back(0);  // in the place of the last target
  }
  TRIBUTARY_RETURN_IF_ERROR(Drop(data.rows * stride_));
  return data;
}

}  // namespace

absl::StatusOr<std::unique_ptr<InputRows>> OpenTextInput(
    const v1::Preprocessing& preprocessing, const InputOptions& options) {
  auto input = std::make_unique<TextInput>(preprocessing, options);
  TRIBUTARY_RETURN_IF_ERROR(input->Begin());
  return input;
}

}  // namespace tributary
