// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/train/data/readers/csv/csv_missing.h"

namespace tributary {

// True for a number, and for a text of digits and their punctuation, such as a
// date, a time or a number with a decimal comma.
bool LooksNumeric(absl::string_view text);

// True if the first row certainly names the columns: it has no number in any of
// `columns`, and in one of them a word above a number of the row `next`.
// Categories prove nothing, because they can be words or numbers.
bool HasWordAboveNumber(const std::vector<std::string>& first,
                        absl::Span<const absl::string_view> next,
                        absl::Span<const int> columns,
                        const MissingFields& missing);
// Returns the first field that looks like data: a number, a date, a missing
// value, or a word that appears twice. Returns "" if there is none.
std::string DataAmongNames(const std::vector<std::string>& first,
                           const MissingFields& missing);

// Returns the message about a header in which `name` is data: "wanted a header
// ..., got "5.1", which ...; if the file has no header, set ...".
std::string NoHeaderText(absl::string_view name, absl::string_view why);

}  // namespace tributary
