// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tributary {

// What to do about a table that is not as wanted, for the end of an error
// message. Each text begins with "; ", or is empty when nothing is known. A
// setting behind "as in" can be pasted below `csv` in the job file.

// When the fields of a row seem to be separated by another character.
std::string DelimiterHint(absl::Span<const absl::string_view> fields,
                          char delimiter);

// The character that separates the fields of `row` instead of `delimiter`; 0:
// none does.
char OtherDelimiter(absl::Span<const absl::string_view> fields, char delimiter);

// When a field that is not a number is one with a decimal comma or with
// separators between digits, or one that is too large.
std::string NumberHint(absl::string_view field);

// A text or a list of texts in YAML, and in JSON, on one line.
std::string YamlText(absl::string_view text);
std::string YamlList(absl::Span<const std::string> texts);

// The name of `header` that is most likely meant by `name`; empty: none is
// near.
std::string NearestColumn(absl::string_view name,
                          const std::vector<std::string>& header);

}  // namespace tributary
