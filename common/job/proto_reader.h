#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/job/yaml_tree.h"
#include "common/status/place.h"
#include "google/protobuf/message.h"

namespace tributary {

// Reads YAML into a message by the rules at the head of job.proto, knowing
// nothing of any one field. Only what a field's type says is checked here;
// ranges and combinations come later and ask `places` for the lines.
class ProtoReader {
 public:
  ProtoReader(YamlSource source, Places* places)
      : source_(std::move(source)), places_(places) {}

  // Adds what `node` says to `message`, which stands at `path` in the job.
  absl::Status ReadMessage(const YamlNode& node, const std::string& path,
                           google::protobuf::Message* message) const;

  // Replaces `field` of `message`; for a member of a oneof, the other member
  // goes. `path` is the field's.
  absl::Status ReadField(const YamlNode& node, const std::string& path,
                         google::protobuf::Message* message,
                         const google::protobuf::FieldDescriptor* field) const;

  // `job.yaml:12: ` and the sentence.
  template <typename... Text>
  absl::Status Error(int line, const Text&... text) const {
    return absl::InvalidArgumentError(
        absl::StrCat(source_.At(line), ": ", text...));
  }

  // `unknown field "optimiser" in training; did you mean "optimizer"?`
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

// The keys that a message takes, in the schema's order.
std::vector<std::string> FieldNames(const google::protobuf::Descriptor& type);

}  // namespace tributary
