// SPDX-License-Identifier: Apache-2.0
#include "common/job/yaml/override.h"

#include <charconv>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "common/job/yaml/proto_reader.h"
#include "common/schema/scalar_text.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kMaxShown = 100;

// Follows the path of an override from the job to the field.
class OverrideWalk {
 public:
  // removes: the value is a written null.
  OverrideWalk(const ProtoReader& reader, std::string place, bool removes,
               Places* places)
      : reader_(reader),
        place_(std::move(place)),
        removes_(removes),
        places_(places) {}

  absl::Status Apply(absl::string_view key, const YamlNode& value,
                     Message* job) {
    message_ = job;
    const std::vector<std::string> names = absl::StrSplit(key, '.');
    for (size_t i = 0; i < names.size(); ++i) {
      const FieldDescriptor* field =
          message_->GetDescriptor()->FindFieldByName(names[i]);
      if (field == nullptr) {
        return reader_.UnknownField(1, names[i], path_,
                                    *message_->GetDescriptor());
      }
      LeaveOtherMember(*field);
      path_ = JoinPath(path_, names[i]);
      if (i + 1 == names.size()) {
        if (removes_) return Remove(*field);
        return reader_.ReadField(value, path_, message_, field);
      }
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
        return reader_.Error(1, path_, " is ", WantedScalar(*field),
                             " and has no field ", Quoted(names[i + 1]));
      }
      if (!field->is_repeated()) {
        if (!message_->GetReflection()->HasField(*message_, field)) {
          places_->Record(path_, place_);
        }
        message_ = message_->GetReflection()->MutableMessage(message_, field);
        continue;
      }
      TRIBUTARY_RETURN_IF_ERROR(EnterItem(names[++i], field));
      if (i + 1 == names.size()) return ReplaceItem(value);
    }
    return absl::OkStatus();
  }

 private:
  // Setting a member of a oneof removes the member that was set before.
  void LeaveOtherMember(const FieldDescriptor& field) {
    const auto* one = field.real_containing_oneof();
    if (one == nullptr) return;
    const FieldDescriptor* old =
        message_->GetReflection()->GetOneofFieldDescriptor(*message_, one);
    if (old != nullptr && old != &field) {
      places_->Forget(JoinPath(path_, old->name()));
    }
  }

  // Makes the job as if the field had not been written.
  absl::Status Remove(const FieldDescriptor& field) {
    message_->GetReflection()->ClearField(message_, &field);
    places_->Forget(path_);
    return absl::OkStatus();
  }

  absl::Status EnterItem(const std::string& index_text,
                         const FieldDescriptor* field) {
    const int size = message_->GetReflection()->FieldSize(*message_, field);
    int index = -1;
    const char* const end = index_text.data() + index_text.size();
    const auto [stop, error] = std::from_chars(index_text.data(), end, index);
    if (error != std::errc() || stop != end || index < 0 || index >= size) {
      return reader_.Error(1, path_, " has ", size,
                           size == 1 ? " entry" : " entries",
                           " counted from 0, got ", Quoted(index_text));
    }
    path_ = JoinPath(path_, index_text);
    message_ = message_->GetReflection()->MutableRepeatedMessage(message_,
                                                                 field, index);
    return absl::OkStatus();
  }

  absl::Status ReplaceItem(const YamlNode& value) {
    message_->Clear();
    places_->Forget(path_);
    return reader_.ReadMessage(value, path_, message_);
  }

  const ProtoReader& reader_;
  const std::string place_;
  const bool removes_;
  Places* const places_;
  Message* message_ = nullptr;
  std::string path_;
};

}  // namespace

absl::Status ApplyOverride(absl::string_view origin,
                           const std::string& override_text, Places* places,
                           v1::JobSpec* job) {
  std::string shown = absl::Utf8SafeCEscape(override_text);
  if (shown.size() > kMaxShown) shown.replace(kMaxShown, shown.npos, "...");
  const YamlSource source{.name = absl::StrCat(origin, shown),
                          .has_lines = false};
  const size_t equals = override_text.find('=');
  if (equals == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        source.name, ": wants key=value, as in training.steps=100"));
  }
  const absl::string_view text =
      absl::string_view(override_text).substr(equals + 1);
  TRIBUTARY_ASSIGN_OR_RETURN(const YamlNode value, ParseYaml(text, source));
  const ProtoReader reader(source, places);
  const bool removes = value.kind == YamlNode::Kind::kNull &&
                       !absl::StripAsciiWhitespace(text).empty();
  return OverrideWalk(reader, source.name, removes, places)
      .Apply(absl::string_view(override_text).substr(0, equals), value, job);
}

}  // namespace tributary
