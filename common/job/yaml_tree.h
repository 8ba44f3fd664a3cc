#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tributary {

// What stands in a YAML text, with its lines.
struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  struct Key {
    std::string text;
    int line = 1;
  };

  Kind kind = Kind::kNull;
  int line = 1;                // from 1; a value has the line of its key
  std::string text = {};       // of a scalar, UTF-8
  bool quoted = false;         // a scalar in quotes is text, never a number
  std::vector<Key> keys = {};  // of a map, in order, repeated ones too
  std::vector<YamlNode> items = {};  // of a sequence, or the values of the keys
};

// Where a text came from, as errors name it: "job.yaml:12" for line 12 of a
// file, "--set seed=1" for all of an override.
struct YamlSource {
  std::string name;
  bool has_lines = true;

  std::string At(int line) const;
};

// Larger or deeper texts are refused, and so are anchors and aliases: a job
// file has no use for them, and with them a small text could stand for a huge
// one.
inline constexpr size_t kMaxYamlBytes = 1 << 20;
inline constexpr size_t kMaxYamlNodes = 100'000;
inline constexpr size_t kMaxYamlDepth = 32;

// One document, empty counting as null. InvalidArgument "job.yaml:3: ...".
absl::StatusOr<YamlNode> ParseYaml(absl::string_view text,
                                   const YamlSource& source);

}  // namespace tributary
