// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/synthetic.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/train/data/readers/synthetic_models.h"

namespace tributary {
namespace {

using Kind = SyntheticOptions::Kind;

constexpr int64_t kMaxRows = 50'000'000;

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kCtr:
      return "ctr";
    case Kind::kLinear:
      return "linear";
    case Kind::kMlpTeacher:
      return "mlp_teacher";
    case Kind::kMarkovText:
      return "markov_text";
  }
  return "";
}

absl::Status Check(const SyntheticOptions& options, TargetKind target) {
  const std::string name = absl::StrCat("synthetic ", KindName(options.kind));
  if (options.rows < 1 || options.rows > kMaxRows || options.first_row < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": wanted 1 to ", kMaxRows, " rows from row 0 or later on, got ",
        options.rows, " from row ", options.first_row, " on"));
  }
  const bool markov = options.kind == Kind::kMarkovText;
  if (options.length < 0 || (options.length > 0 && !markov)) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": wanted no length, which belongs to markov_text, got ",
        options.length));
  }
  if (options.length > 0 &&
      (options.first_row > kMaxRows - options.rows ||
       options.length > kMaxRows / (options.first_row + options.rows))) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": wanted at most ", kMaxRows, " tokens from the start, got ",
        options.rows, " samples of ", options.length, " from sample ",
        options.first_row, " on"));
  }
  if (markov && options.first_row > kMaxRows - options.rows) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": the stream is drawn from its start; wanted at most ", kMaxRows,
        " rows from there, got ", options.rows, " from row ", options.first_row,
        " on"));
  }
  const bool real =
      options.kind == Kind::kLinear || options.kind == Kind::kMlpTeacher;
  if (real && target != TargetKind::kReal) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": the targets are real numbers; wanted the loss mse"));
  }
  if (markov && target != TargetKind::kClass) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": the targets are classes; wanted the loss cross_entropy"));
  }
  return absl::OkStatus();
}

absl::Status MakeClicks(const SyntheticOptions& options, RawData* data) {
  const ClickModel model;
  data->numeric_width = ClickModel::kDense + ClickModel::kTables;
  data->numbers.reserve(options.rows * data->numeric_width);
  for (int64_t i = 0; i < options.rows; ++i) {
    const ClickModel::Row row = model.At(options.seed, options.first_row + i);
    data->numbers.insert(data->numbers.end(), row.dense.begin(),
                         row.dense.end());
    data->numbers.insert(data->numbers.end(), row.ids.begin(), row.ids.end());
    TRIBUTARY_RETURN_IF_ERROR(data->targets.Append(row.click ? 1 : 0));
  }
  return absl::OkStatus();
}

template <typename Model>
absl::Status MakeRegression(const SyntheticOptions& options, RawData* data) {
  const Model model;
  data->numeric_width = Model::kInputs;
  data->numbers.reserve(options.rows * data->numeric_width);
  for (int64_t i = 0; i < options.rows; ++i) {
    const auto row = model.At(options.seed, options.first_row + i);
    data->numbers.insert(data->numbers.end(), row.x.begin(), row.x.end());
    TRIBUTARY_RETURN_IF_ERROR(data->targets.Append(row.y));
  }
  return absl::OkStatus();
}

void MakeMarkovSequences(const SyntheticOptions& options, RawData* data) {
  const int64_t length = options.length;
  const int64_t first = options.first_row * length;
  const int64_t size = options.rows * length + 1;
  const std::vector<uint8_t> stream =
      MarkovModel().Stream(options.seed, first + size);
  data->tokens = {stream.begin() + first, stream.end()};
  data->token_stride = length;
  data->num_tokens = MarkovModel::kTokens;
  data->targets.width = length;
}

absl::Status MakeMarkovText(const SyntheticOptions& options, RawData* data) {
  const MarkovModel model;
  const std::vector<uint8_t> tokens =
      model.Stream(options.seed, options.first_row + options.rows);
  const auto token = [&](int64_t t) { return t < 0 ? 0 : tokens[t]; };
  data->code_widths = {MarkovModel::kTokens, MarkovModel::kTokens};
  data->codes.reserve(2 * options.rows);
  for (int64_t i = 0; i < options.rows; ++i) {
    const int64_t t = options.first_row + i;
    data->codes.push_back(token(t - 2));
    data->codes.push_back(token(t - 1));
    TRIBUTARY_RETURN_IF_ERROR(data->targets.Append(token(t)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RawData> MakeSynthetic(const SyntheticOptions& options,
                                      TargetKind kind) {
  TRIBUTARY_RETURN_IF_ERROR(Check(options, kind));
  RawData data;
  data.name = absl::StrCat("synthetic ", KindName(options.kind));
  data.rows = options.rows;
  data.targets.kind = kind;
  absl::Status status;
  switch (options.kind) {
    case Kind::kCtr:
      status = MakeClicks(options, &data);
      break;
    case Kind::kLinear:
      status = MakeRegression<LinearModel>(options, &data);
      break;
    case Kind::kMlpTeacher:
      status = MakeRegression<MlpTeacherModel>(options, &data);
      break;
    case Kind::kMarkovText:
      if (options.length > 0) {
        MakeMarkovSequences(options, &data);
        data.feature_shape = {options.length};
        return data;
      }
      status = MakeMarkovText(options, &data);
      break;
  }
  TRIBUTARY_RETURN_IF_ERROR(status);
  data.feature_shape = {data.numeric_width};
  for (int64_t width : data.code_widths) data.feature_shape[0] += width;
  return data;
}

}  // namespace tributary
