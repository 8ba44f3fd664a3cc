// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/job/yaml/yaml_tree.h"
#include "common/status/place.h"
#include "google/protobuf/message.h"

namespace tributary {

// Reads YAML into a message by the rules at the top of job.proto, without
// knowledge of individual fields. It checks only what a field's type requires.
// Ranges and combinations are checked later, with line numbers from `places`.
class ProtoReader {
 public:
  ProtoReader(YamlSource source, Places* places)
      : source_(std::move(source)), places_(places) {}

  // Adds the contents of `node` to `message`, whose path in the job is `path`.
  absl::Status ReadMessage(const YamlNode& node, const std::string& path,
                           google::protobuf::Message* message) const;

  // Replaces `field` of `message`; a set member of the same oneof is removed.
  // `path` is the field's path.
  absl::Status ReadField(const YamlNode& node, const std::string& path,
                         google::protobuf::Message* message,
                         const google::protobuf::FieldDescriptor* field) const;

  // Makes an error: `job.yaml:12: ` and the text.
  template <typename... Text>
  absl::Status Error(int line, const Text&... text) const {
    return absl::InvalidArgumentError(
        absl::StrCat(source_.At(line), ": ", text...));
  }

  // Makes `unknown field "optimiser" in training; did you mean "optimizer"?`
  absl::Status UnknownField(
      int line, const std::string& name, const std::string& path,
      const google::protobuf::Descriptor& descriptor) const;

 private:
  absl::Status ReadMap(const YamlNode& node, const std::string& path,
                       google::protobuf::Message* message) const;
  absl::Status ReadShorthand(const YamlNode& node, const std::string& path,
                             google::protobuf::Message* message) const;
  absl::Status ReadRepeated(
      const YamlNode& node, const std::string& path,
      google::protobuf::Message* message,
      const google::protobuf::FieldDescriptor* field) const;
  absl::Status ReadScalar(const YamlNode& node, const std::string& path,
                          google::protobuf::Message* message,
                          const google::protobuf::FieldDescriptor* field) const;

  const YamlSource source_;
  Places* const places_;
};

// The keys of a message, in the schema's order.
std::vector<std::string> FieldNames(const google::protobuf::Descriptor& type);

}  // namespace tributary
