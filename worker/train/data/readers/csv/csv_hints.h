// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tributary {

// Advice about a table that is not as wanted, for the end of an error
// message. Each text begins with "; ", or is empty when nothing is known. A
// setting after "as in" can be pasted below `csv` in the job file.

// When the fields of a row, at least one, seem to be separated by another
// character, or the row is no row: a comment, or blanks alone.
std::string DelimiterHint(absl::Span<const absl::string_view> fields,
                          char delimiter);

// The character that separates the fields of `row` instead of `delimiter`; 0:
// none does.
char OtherDelimiter(absl::Span<const absl::string_view> fields, char delimiter);

// When a field that is not a number has a decimal comma or separators between
// digits, or is too large.
std::string NumberHint(absl::string_view field);

// A text or a list of texts in YAML, and in JSON, on one line.
std::string YamlText(absl::string_view text);
std::string YamlList(absl::Span<const std::string> texts);

// The name in `header` that is most similar to `name`; empty: none is similar.
std::string NearestColumn(absl::string_view name,
                          const std::vector<std::string>& header);

}  // namespace tributary
