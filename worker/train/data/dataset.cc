// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/status/status_macros.h"
#include "worker/train/data/raw_checksum.h"

namespace tributary {
namespace {

float Normalize(float x, float mean, float std) { return (x - mean) / std; }

// StoredRows::Checksum adds the same arrays in the same order.
uint32_t ChecksumOf(const RawData& raw) {
  RawChecksum checksum;
  checksum.AddValue(raw.rows);
  checksum.Add(raw.feature_shape);
  checksum.Add(raw.bytes);
  checksum.AddValue(raw.byte_divisor);
  checksum.Add(raw.numbers);
  checksum.Add(raw.offsets);
  checksum.Add(raw.code_widths);
  checksum.Add(raw.codes);
  checksum.Add(raw.tokens);
  checksum.AddValue(raw.token_stride);
  checksum.Add(raw.targets.labels);
  checksum.Add(raw.targets.values);
  return checksum.value();
}

}  // namespace

Dataset::Dataset(RawData raw, const Normalization& normalization)
    : Dataset(std::move(raw), normalization, 0) {}

Dataset::Dataset(RawData raw, const Normalization& normalization,
                 uint32_t checksum)
    : raw_(std::move(raw)),
      checksum_(checksum != 0 ? checksum : ChecksumOf(raw_)),
      normalization_(normalization) {
  if (!raw_.tokens.empty()) {
    feature_width_ = NumElements(raw_.feature_shape);
    return;
  }
  feature_width_ = raw_.numeric_width;
  for (int64_t width : raw_.code_widths) feature_width_ += width;
  TRIBUTARY_CHECK(NumElements(raw_.feature_shape) == feature_width_);
  TRIBUTARY_CHECK(normalization.mean.size() == normalization.std.size());
  TRIBUTARY_CHECK(normalization.none() || normalization.one_pair() ||
                  static_cast<int64_t>(normalization.mean.size()) ==
                      raw_.numeric_width);

  if (raw_.numbers.empty()) {
    for (int i = 0; i < 256; ++i) {
      byte_value_[i] = static_cast<float>(i) / raw_.byte_divisor;
      if (normalization.one_pair()) {
        byte_value_[i] = Normalize(byte_value_[i], normalization.mean[0],
                                   normalization.std[0]);
      }
    }
    if (!normalization.one_pair()) byte_normalization_ = normalization;
    return;
  }
  if (normalization.none()) return;
  const size_t width = raw_.numeric_width;
  for (size_t i = 0; i < raw_.numbers.size(); ++i) {
    const size_t j = normalization.one_pair() ? 0 : i % width;
    raw_.numbers[i] =
        Normalize(raw_.numbers[i], normalization.mean[j], normalization.std[j]);
  }
}

absl::Status Dataset::CheckTargets(const Shape& outputs) const {
  const bool classes = target_kind() == TargetKind::kClass;
  int64_t wanted = NumElements(outputs);
  if (classes && wanted > 0) wanted /= outputs.back();
  if (target_width() == wanted) return absl::OkStatus();
  const char* one = "one output for each";
  if (classes) {
    one = target_width() == 1
              ? "one row of outputs; a flatten or global_avg_pool makes one"
              : "one row of outputs for each";
  }
  return absl::InvalidArgumentError(
      absl::StrCat(raw_.name, ": a sample has ", target_width(),
                   classes ? " labels" : " numbers to predict",
                   ", but the model gives outputs of shape ",
                   ShapeText(outputs), " for it, wanted ", one));
}

absl::StatusOr<std::unique_ptr<Dataset>> Dataset::OnDisk(
    std::shared_ptr<const StoredRows> stored,
    const Normalization& normalization) {
  RawData row = stored->first_row();
  TRIBUTARY_ASSIGN_OR_RETURN(const uint32_t checksum, stored->Checksum(&row));
  std::unique_ptr<Dataset> set(
      new Dataset(std::move(row), normalization, checksum));
  set->stored_ = std::move(stored);
  return set;
}

absl::StatusOr<std::unique_ptr<const Dataset>> Dataset::Load(
    absl::Span<const int64_t> rows) const {
  TRIBUTARY_ASSIGN_OR_RETURN(RawData raw, stored_->Read(rows));
  return std::unique_ptr<const Dataset>(
      new Dataset(std::move(raw), normalization_, checksum_));
}

absl::Status Dataset::Fetch(absl::Span<const int64_t> rows, Batch* out) const {
  if (!on_disk()) {
    Gather(rows, out);
    return absl::OkStatus();
  }
  std::vector<int64_t> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<const Dataset> loaded,
                             Load(sorted));
  std::vector<int64_t> places;
  for (int64_t row : rows) {
    places.push_back(std::lower_bound(sorted.begin(), sorted.end(), row) -
                     sorted.begin());
  }
  loaded->Gather(places, out);
  return absl::OkStatus();
}

absl::Status Dataset::CheckParts(const Check& check) const {
  if (!on_disk()) return check(*this, 0);
  return stored_->ForEachPart([&](const RawData& part, int64_t first) {
    return check(Dataset(part, normalization_, checksum_), first);
  });
}

absl::Status Dataset::CheckClasses(int64_t classes) const {
  return CheckParts([classes](const Dataset& part, int64_t first) {
    return part.CheckClasses(classes, first);
  });
}

absl::Status Dataset::CheckTokens(int64_t tokens) const {
  return CheckParts([tokens](const Dataset& part, int64_t first) {
    return part.CheckTokens(tokens, first);
  });
}

absl::Status Dataset::CheckClasses(int64_t classes, int64_t first) const {
  if (!raw_.tokens.empty() && raw_.num_tokens > classes) {
    return absl::InvalidArgumentError(absl::StrCat(
        raw_.name, ": the text has ", raw_.num_tokens,
        " different tokens, but the model's outputs are for ", classes));
  }
  const std::vector<int64_t>& labels = raw_.targets.labels;
  const auto wrong =
      std::find_if(labels.begin(), labels.end(),
                   [classes](int64_t label) { return label >= classes; });
  if (wrong == labels.end()) return absl::OkStatus();
  std::string place =
      absl::StrCat(raw_.name, ": sample ", first + (wrong - labels.begin()));
  int64_t label = *wrong;
  if (!raw_.targets.greatest_place.empty()) {
    place = raw_.targets.greatest_place;
    label = raw_.targets.greatest_class;
  }
  const std::vector<std::string>& names = raw_.targets.class_names;
  return absl::InvalidArgumentError(absl::StrCat(
      place, " has class ", label,
      names.empty() ? std::string() : absl::StrCat(" (\"", names[label], "\")"),
      ", but the model's ", classes, " outputs are for classes 0 to ",
      classes - 1));
}

absl::StatusOr<std::vector<int64_t>> Dataset::CountClasses(
    int64_t classes) const {
  std::vector<int64_t> counts(classes);
  const auto count = [&counts, classes](int64_t label) {
    if (label < classes) ++counts[label];
  };
  TRIBUTARY_RETURN_IF_ERROR(CheckParts([&](const Dataset& part, int64_t) {
    const RawData& raw = part.raw_;
    for (int64_t label : raw.targets.labels) count(label);
    if (raw.tokens.empty()) return absl::OkStatus();
    for (int64_t row = 0; row < raw.rows; ++row) {
      const int32_t* sample = raw.tokens.data() + row * raw.token_stride;
      for (int64_t i = 1; i <= part.feature_width_; ++i) count(sample[i]);
    }
    return absl::OkStatus();
  }));
  return counts;
}

absl::Status Dataset::CheckTokens(int64_t tokens, int64_t first) const {
  if (!raw_.tokens.empty()) {
    if (raw_.num_tokens <= tokens) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        raw_.name, ": the text has ", raw_.num_tokens,
        " different tokens, but the model's embedding is for ", tokens));
  }
  Batch batch;
  for (int64_t row = 0; row < raw_.rows; ++row) {
    Gather({row}, &batch);
    for (int64_t i = 0; i < feature_width_; ++i) {
      const float id = batch.features.data()[i];
      if (id >= 0 && id < static_cast<float>(tokens) && id == std::floor(id)) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          raw_.name, ": sample ", first + row, ", feature ", i, " is ", id,
          ", but the model's embedding takes whole numbers from 0 to ",
          tokens - 1));
    }
  }
  return absl::OkStatus();
}

void Dataset::GatherTokens(absl::Span<const int64_t> rows, Batch* out) const {
  const int64_t length = feature_width_;
  float* to = out->features.data();
  for (int64_t row : rows) {
    TRIBUTARY_CHECK(row >= 0 && row < raw_.rows);
    const int32_t* from = raw_.tokens.data() + row * raw_.token_stride;
    for (int64_t i = 0; i < length; ++i) to[i] = static_cast<float>(from[i]);
    out->labels.insert(out->labels.end(), from + 1, from + 1 + length);
    to += length;
  }
}

void Dataset::GatherBytes(int64_t row, float* out) const {
  const int64_t width = raw_.numeric_width;
  const uint8_t* in = raw_.bytes.data() + row * width;
  const float* table = byte_value_.data();
  for (int64_t j = 0; j < width; ++j) out[j] = table[in[j]];
  if (byte_normalization_.none()) return;
  const float* mean = byte_normalization_.mean.data();
  const float* std = byte_normalization_.std.data();
  for (int64_t j = 0; j < width; ++j)
    out[j] = Normalize(out[j], mean[j], std[j]);
}

void Dataset::GatherNumbers(int64_t row, float* out) const {
  const float* in = raw_.numbers.data() + row * raw_.numeric_width;
  std::copy(in, in + raw_.numeric_width, out);
}

void Dataset::Gather(absl::Span<const int64_t> rows, Batch* out) const {
  const Targets& targets = raw_.targets;
  out->rows = static_cast<int64_t>(rows.size());
  out->features.Resize(rows.size() * feature_width_);
  out->labels.clear();
  out->targets.clear();
  if (!raw_.tokens.empty()) return GatherTokens(rows, out);
  const size_t code_columns = raw_.code_widths.size();
  float* to = out->features.data();
  for (int64_t row : rows) {
    TRIBUTARY_CHECK(row >= 0 && row < raw_.rows);
    if (raw_.numbers.empty()) {
      GatherBytes(row, to);
    } else {
      GatherNumbers(row, to);
    }
    float* block = to + raw_.numeric_width;
    to += feature_width_;
    std::fill(block, to, 0.0f);
    for (size_t c = 0; c < code_columns; ++c) {
      const int32_t code = raw_.codes[row * code_columns + c];
      if (code >= 0) block[code] = 1.0f;
      block += raw_.code_widths[c];
    }
    if (targets.kind == TargetKind::kClass) {
      out->labels.push_back(targets.labels[row]);
    } else {
      const float* value = targets.values.data() + row * targets.width;
      out->targets.insert(out->targets.end(), value, value + targets.width);
    }
  }
}

}  // namespace tributary
