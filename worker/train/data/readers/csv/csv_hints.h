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

// Returns a hint when the fields of a row, at least one, seem to be separated
// by another character, or when the row is only a comment or blanks.
std::string DelimiterHint(absl::Span<const absl::string_view> fields,
                          char delimiter);

// Returns the character that seems to separate the fields of a row instead of
// `delimiter`, or 0 if there is none.
char OtherDelimiter(absl::Span<const absl::string_view> fields, char delimiter);

// Returns a hint when a field that is not a number has a decimal comma or
// separators between digits, or is too large.
std::string NumberHint(absl::string_view field);

// Return a text or a list of texts on one line, in YAML that is also JSON.
std::string YamlText(absl::string_view text);
std::string YamlList(absl::Span<const std::string> texts);

// Returns the name in `header` that is most similar to `name`, or "" if none is
// similar.
std::string NearestColumn(absl::string_view name,
                          const std::vector<std::string>& header);

}  // namespace tributary
