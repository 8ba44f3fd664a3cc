#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace tributary {

// Writes HTML and SVG that an XML parser takes too: every tag is closed, every
// text and attribute escaped.
class Markup {
 public:
  using Attributes = std::vector<std::pair<const char*, std::string>>;

  Markup& Open(const char* tag, const Attributes& attributes = {});
  Markup& Close();  // the tag that was opened last
  Markup& Text(absl::string_view text);
  // A tag with nothing in it, or with text alone.
  Markup& Empty(const char* tag, const Attributes& attributes = {});
  Markup& Element(const char* tag, const Attributes& attributes,
                  absl::string_view text);
  // As it stands: a style sheet without "<" and "&", or what another Markup
  // has made.
  Markup& Raw(absl::string_view markup);

  // All tags are closed.
  std::string Take();

 private:
  void Begin(const char* tag, const Attributes& attributes, const char* end);

  std::string text_;
  std::vector<const char*> open_;
};

// "12.5", "3": at most two decimals, for coordinates.
std::string Coordinate(double value);

}  // namespace tributary
