// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/rounding_notes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "worker/train/data/readers/csv/csv_columns.h"

namespace tributary {
namespace {

// Whether rounding changes a number by 0.5 or more, or by a visible part of the
// range, or the numbers are tiny.
bool Matters(const Rounding& rounding) {
  constexpr double kSteps = 1024;
  const double range = rounding.greatest - rounding.least;
  return rounding.most >= 0.5 || rounding.is_tiny() ||
         (range > 0 && rounding.most * kSteps > range);
}

// Whether even float64 rounds the column's numbers by more than 2^-18 of the
// deviation, because they are so far from 0.
bool LostInFloat64(double offset, float deviation) {
  return std::abs(offset) * 0x1p-53 > 0x1p-18 * deviation;
}

std::string ColumnText(const CsvWords& words, size_t feature) {
  if (feature >= words.roles.numeric.size()) {
    return absl::StrCat("feature ", feature);
  }
  return absl::StrCat(
      "column ", CsvColumnText(words.header, words.roles.numeric[feature]));
}

// Returns "train.csv: column 1 ("t") and 2 more", or "" if no feature is
// affected.
template <typename Affected>
std::string Features(const Dataset& train, const CsvWords& words, size_t count,
                     const Affected& affected) {
  std::string text;
  int64_t more = 0;
  for (size_t feature = 0; feature < count; ++feature) {
    if (!affected(feature)) continue;
    if (!text.empty()) {
      ++more;
    } else {
      text = absl::StrCat(train.name(), ": ", ColumnText(words, feature));
    }
  }
  if (more > 0) absl::StrAppend(&text, " and ", more, " more");
  return text;
}

std::string TargetText(const Dataset& train, const CsvWords& words) {
  if (words.num_columns == 0) return train.target_name();
  return absl::StrCat(train.name(), ": column ",
                      CsvColumnText(words.header, words.roles.label));
}

}  // namespace

std::vector<std::string> RoundingNotes(const Dataset& train,
                                       const Normalization& normalization,
                                       const CsvWords& words) {
  std::vector<std::string> notes;
  const std::vector<Rounding>& rounding = train.rounding();
  const auto tiny = [&](size_t feature) { return rounding[feature].is_tiny(); };
  const auto rounded = [&](size_t feature) {
    return Matters(rounding[feature]) && !tiny(feature) &&
           !rounding[feature].in_float64;
  };
  if (normalization.none()) {
    const std::string zeros = Features(train, words, rounding.size(), tiny);
    if (!zeros.empty()) {
      notes.push_back(absl::StrCat(
          zeros,
          ": float32 rounds these numbers to 0 or to a few others, because "
          "they are so small; multiply them by a constant in the file"));
    }
    const std::string features =
        Features(train, words, rounding.size(), rounded);
    if (!features.empty()) {
      notes.push_back(absl::StrCat(
          features,
          ": float32 rounds these numbers, so that different ones may "
          "become equal; `normalize: standardize` subtracts the mean before "
          "the rounding"));
    }
  }
  const std::vector<double>& offsets = normalization.offsets;
  const std::string lost = Features(
      train, words, std::max(offsets.size(), rounding.size()),
      [&](size_t feature) {
        return (feature < rounding.size() && rounding[feature].in_float64) ||
               (feature < offsets.size() &&
                LostInFloat64(offsets[feature], normalization.std[feature]));
      });
  if (!lost.empty()) {
    notes.push_back(absl::StrCat(
        lost,
        ": float64 rounds these numbers, so that different ones may become "
        "equal; subtract a constant from them in the file"));
  }
  if (train.target_rounding().in_float64) {
    notes.push_back(absl::StrCat(
        TargetText(train, words),
        ": float64 rounds these targets, so that different ones may become "
        "equal; subtract a constant from them in the file"));
  } else if (Matters(train.target_rounding())) {
    notes.push_back(absl::StrCat(
        TargetText(train, words), ": float32 rounds these targets by up to ",
        train.target_rounding().most,
        train.target_rounding().is_tiny()
            ? "; multiply them by a constant in the file"
            : "; subtract a constant from them in the file"));
  }
  return notes;
}

}  // namespace tributary
