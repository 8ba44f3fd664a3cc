// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace tributary {

// Writes HTML and SVG that an XML parser accepts: every tag is closed, every
// text and attribute escaped.
class Markup {
 public:
  using Attributes = std::vector<std::pair<const char*, std::string>>;

  Markup& Open(const char* tag, const Attributes& attributes = {});
  Markup& Close();  // closes the tag that was opened last
  Markup& Text(absl::string_view text);
  // A tag without content, or with text only.
  Markup& Empty(const char* tag, const Attributes& attributes = {});
  Markup& Element(const char* tag, const Attributes& attributes,
                  absl::string_view text);
  // Adds markup unescaped: a style sheet without "<" and "&", or the output of
  // another Markup.
  Markup& Raw(absl::string_view markup);

  // Returns the text; all tags must be closed.
  std::string Take();

 private:
  void Begin(const char* tag, const Attributes& attributes, const char* end);

  std::string text_;
  std::vector<const char*> open_;
};

// "12.5", "3": at most two decimals, for coordinates.
std::string Coordinate(double value);

}  // namespace tributary
