// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/page/markup.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"

namespace tributary {
namespace {

// Escapes text for XML. Characters that XML cannot represent become spaces.
std::string Escape(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  }
  return escaped;
}

}  // namespace

void Markup::Begin(const char* tag, const Attributes& attributes,
                   const char* end) {
  absl::StrAppend(&text_, "<", tag);
  for (const auto& [name, value] : attributes) {
    absl::StrAppend(&text_, " ", name, "=\"", Escape(value), "\"");
  }
  text_ += end;
}

Markup& Markup::Open(const char* tag, const Attributes& attributes) {
  Begin(tag, attributes, ">");
  open_.push_back(tag);
  return *this;
}

Markup& Markup::Close() {
  TRIBUTARY_CHECK(!open_.empty());
  absl::StrAppend(&text_, "</", open_.back(), ">\n");
  open_.pop_back();
  return *this;
}

Markup& Markup::Text(absl::string_view text) {
  text_ += Escape(text);
  return *this;
}

Markup& Markup::Empty(const char* tag, const Attributes& attributes) {
  Begin(tag, attributes, "/>\n");
  return *this;
}

Markup& Markup::Element(const char* tag, const Attributes& attributes,
                        absl::string_view text) {
  return Open(tag, attributes).Text(text).Close();
}

Markup& Markup::Raw(absl::string_view markup) {
  absl::StrAppend(&text_, markup);
  return *this;
}

std::string Markup::Take() {
  TRIBUTARY_CHECK(open_.empty());
  return std::move(text_);
}

std::string Coordinate(double value) {
  std::string text = absl::StrFormat("%.2f", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace tributary
