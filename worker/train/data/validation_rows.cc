// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/validation_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/train/data/batches/sampler.h"

namespace tributary {
namespace {

// Separates this choice from the orders of the epochs, which have the same
// seed.
constexpr uint64_t kValidationStream = 0x76616c6964617465;

// Returns for each row whether it is taken.
std::vector<bool> Choose(int64_t rows, int64_t count,
                         std::optional<uint64_t> seed) {
  std::vector<bool> taken(rows);
  if (!seed) {
    std::fill(taken.end() - count, taken.end(), true);
    return taken;
  }
  const std::vector<uint32_t> order =
      ShuffledOrder(rows, *seed ^ kValidationStream, /*epoch=*/0);
  for (int64_t i = 0; i < count; ++i) taken[order[i]] = true;
  return taken;
}

// Moves the taken rows of an array [rows, ...] to the result.
template <typename T>
std::vector<T> TakeRows(const std::vector<bool>& taken,
                        std::vector<T>* values) {
  std::vector<T> result;
  const size_t width = values->size() / taken.size();
  auto to = values->begin();
  for (size_t row = 0; row < taken.size(); ++row) {
    const auto from = values->begin() + row * width;
    if (taken[row]) {
      result.insert(result.end(), from, from + width);
    } else {
      to = std::copy(from, from + width, to);
    }
  }
  values->erase(to, values->end());
  return result;
}

// A copy of `train` without the rows.
RawData FormOf(const RawData& train) {
  RawData form;
  form.name = absl::StrCat(train.name, " (validation)");
  form.feature_shape = train.feature_shape;
  form.numeric_width = train.numeric_width;
  form.byte_divisor = train.byte_divisor;
  form.offsets = train.offsets;
  form.code_widths = train.code_widths;
  form.token_stride = train.token_stride;
  form.num_tokens = train.num_tokens;
  form.targets.kind = train.targets.kind;
  form.targets.width = train.targets.width;
  form.targets.class_names = train.targets.class_names;
  form.targets.name = train.targets.name;
  form.targets.greatest_class = train.targets.greatest_class;
  form.targets.greatest_place = train.targets.greatest_place;
  return form;
}

// Sample i has the inputs [i stride, i stride + length); the token after them
// is the last target.
absl::StatusOr<RawData> TakeLastSamples(int64_t count, RawData* train) {
  const int64_t stride = train->token_stride;
  const int64_t length = train->feature_shape[0];
  const int64_t begin = (train->rows - count) * stride;
  const int64_t left = begin < length ? 0 : (begin - length) / stride + 1;
  if (left == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        train->name, ": the validation set has the last ", count, " of ",
        train->rows, " samples, which leaves none to train on"));
  }
  RawData validation = FormOf(*train);
  validation.rows = count;
  validation.tokens = {train->tokens.begin() + begin, train->tokens.end()};
  train->rows = left;
  train->tokens.resize((left - 1) * stride + length + 1);
  return validation;
}

}  // namespace

absl::StatusOr<RawData> TakeValidationRows(double fraction,
                                           std::optional<uint64_t> seed,
                                           RawData* train) {
  const int64_t rows = train->rows;
  if (rows > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        train->name, ": wanted at most 2^32 - 1 rows, got ", rows));
  }
  const int64_t count =
      std::max<int64_t>(1, std::llround(fraction * static_cast<double>(rows)));
  if (count >= rows) {
    return absl::InvalidArgumentError(
        absl::StrCat(train->name, ": the validation set has ", count, " of ",
                     rows, " rows, which leaves none to train on"));
  }
  if (!train->tokens.empty()) return TakeLastSamples(count, train);
  const std::vector<bool> taken = Choose(rows, count, seed);
  RawData validation = FormOf(*train);
  validation.rows = count;
  validation.bytes = TakeRows(taken, &train->bytes);
  validation.numbers = TakeRows(taken, &train->numbers);
  validation.codes = TakeRows(taken, &train->codes);
  validation.targets.labels = TakeRows(taken, &train->targets.labels);
  validation.targets.values = TakeRows(taken, &train->targets.values);
  train->rows = rows - count;
  return validation;
}

}  // namespace tributary
