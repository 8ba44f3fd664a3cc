// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tributary {

// A parsed YAML text with its line numbers.
struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  struct Key {
    std::string text;
    int line = 1;
  };

  Kind kind = Kind::kNull;
  int line = 1;                      // from 1; a value has its key's line
  std::string text = {};             // of a scalar, UTF-8
  bool quoted = false;               // a quoted scalar is text, never a number
  std::vector<Key> keys = {};        // of a map, in order, with duplicates
  std::vector<YamlNode> items = {};  // of a sequence, or the keys' values
};

// The source of a text, as errors name it: "job.yaml:12" for line 12 of a file,
// "--set seed=1" for a whole override.
struct YamlSource {
  std::string name;
  bool has_lines = true;

  std::string At(int line) const;
};

// Larger or deeper texts, anchors and aliases are refused: job files do not
// need them, and aliases could make a small text expand into a huge one.
inline constexpr size_t kMaxYamlBytes = 1 << 20;
inline constexpr size_t kMaxYamlNodes = 100'000;
inline constexpr size_t kMaxYamlDepth = 32;

// Parses one document; an empty one is null. InvalidArgument "job.yaml:3: ...".
absl::StatusOr<YamlNode> ParseYaml(absl::string_view text,
                                   const YamlSource& source);

}  // namespace tributary
