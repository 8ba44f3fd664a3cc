// SPDX-License-Identifier: Apache-2.0
#include "common/job/yaml/job_keys.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/schema/scalar_text.h"
#include "google/protobuf/descriptor.h"
#include "tributary/v1/job.pb.h"

namespace tributary {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

bool IsBlock(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

bool IsNumber(const std::string& word) {
  return !word.empty() &&
         std::all_of(word.begin(), word.end(), absl::ascii_isdigit);
}

// The block that the keys lead to from the job, or nullptr.
const Descriptor* BlockAt(const std::vector<std::string>& keys) {
  const Descriptor* block = v1::JobSpec::descriptor();
  bool in_list = false;
  for (const std::string& key : keys) {
    if (in_list && IsNumber(key)) {
      in_list = false;
      continue;
    }
    const FieldDescriptor* field = block->FindFieldByName(key);
    if (field == nullptr || !IsBlock(*field)) return nullptr;
    block = field->message_type();
    in_list = field->is_repeated();
  }
  return block;
}

// The values that a field takes: an enum's names; true and false; or the keys
// of blocks that may stand alone.
std::vector<std::string> ValuesOf(const FieldDescriptor& field) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    return {"true", "false"};
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    return EnumTexts(*field.enum_type());
  }
  std::vector<std::string> words;
  if (!IsBlock(field)) return words;
  const Descriptor& block = *field.message_type();
  for (int i = 0; i < block.field_count(); ++i) {
    const FieldDescriptor& member = *block.field(i);
    if (IsBlock(member) && !member.is_repeated()) {
      words.push_back(member.name());
    }
  }
  return words;
}

std::vector<std::string> Beginning(const std::vector<std::string>& words,
                                   const std::string& begun) {
  std::vector<std::string> found;
  for (const std::string& word : words) {
    if (absl::StartsWith(word, begun)) found.push_back(word);
  }
  return found;
}

}  // namespace

std::vector<std::string> JobKeys(const std::string& begun) {
  const size_t equals = begun.find('=');
  std::vector<std::string> keys = absl::StrSplit(begun.substr(0, equals), '.');
  const std::string last = keys.back();
  keys.pop_back();
  const Descriptor* block = BlockAt(keys);
  if (block == nullptr) return {};
  std::vector<std::string> words;
  if (equals != std::string::npos) {
    const FieldDescriptor* field = block->FindFieldByName(last);
    if (field == nullptr) return {};
    for (const std::string& value : ValuesOf(*field)) {
      words.push_back(absl::StrCat(begun.substr(0, equals + 1), value));
    }
    return Beginning(words, begun);
  }
  const std::string before = begun.substr(0, begun.size() - last.size());
  for (int i = 0; i < block->field_count(); ++i) {
    const FieldDescriptor& field = *block->field(i);
    words.push_back(
        absl::StrCat(before, field.name(), IsBlock(field) ? "." : "="));
  }
  return Beginning(words, begun);
}

}  // namespace tributary
