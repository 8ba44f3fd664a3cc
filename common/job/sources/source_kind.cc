// SPDX-License-Identifier: Apache-2.0
#include "common/job/sources/source_kind.h"

#include "absl/algorithm/container.h"
#include "common/schema/field_rule.h"

namespace tributary {

#define TRIBUTARY_SOURCE_KINDS(Add) void Add(SourceKinds* kinds);
#include "common/job/sources/source_kinds.inc"
#undef TRIBUTARY_SOURCE_KINDS

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const SourceKinds& AllSourceKinds() {
  static const SourceKinds* const kinds = [] {
    auto* made = new SourceKinds;
#define TRIBUTARY_SOURCE_KINDS(Add) Add(made);
#include "common/job/sources/source_kinds.inc"
#undef TRIBUTARY_SOURCE_KINDS
    return made;
  }();
  return *kinds;
}

// The member of the oneof that is set; null: none.
const FieldDescriptor* MemberOf(const v1::DataSource& source) {
  return v1::DataSource::descriptor()->FindFieldByNumber(source.kind_case());
}

// Returns a field that most kinds have; null if this kind does not.
const FieldDescriptor* FieldOf(const v1::DataSource& source,
                               const std::string& name) {
  const FieldDescriptor* member = MemberOf(source);
  return member == nullptr ? nullptr
                           : member->message_type()->FindFieldByName(name);
}

const Message& MessageOf(const v1::DataSource& source) {
  return source.GetReflection()->GetMessage(source, MemberOf(source));
}

Message* MutableMessageOf(v1::DataSource* source) {
  return source->GetReflection()->MutableMessage(source, MemberOf(*source));
}

int64_t Number(const v1::DataSource& source, const std::string& name) {
  const FieldDescriptor* field = FieldOf(source, name);
  if (field == nullptr) return 0;
  const Message& message = MessageOf(source);
  return message.GetReflection()->GetInt64(message, field);
}

}  // namespace

const SourceKind* KindOf(const v1::DataSource& source) {
  return AllSourceKinds().Find(source.kind_case());
}

std::string SourceKey(const v1::DataSource& source) {
  const FieldDescriptor* member = MemberOf(source);
  return member == nullptr ? "" : member->name();
}

std::vector<std::string> SourceKeys() {
  const auto* kind = v1::DataSource::descriptor()->FindOneofByName("kind");
  std::vector<std::string> keys;
  for (int i = 0; i < kind->field_count(); ++i) {
    keys.push_back(kind->field(i)->name());
  }
  return keys;
}

int64_t SequenceLengthOf(const v1::DataSource& source) {
  const SourceKind* const kind = KindOf(source);
  return kind == nullptr ? 0 : kind->SequenceLength(source);
}

int64_t SampleWidthOf(const v1::DataSource& source) {
  const SourceKind* const kind = KindOf(source);
  return kind == nullptr ? 0 : kind->SampleWidth(source);
}

bool IsGenerated(const v1::DataSource& source) {
  const SourceKind* const kind = KindOf(source);
  v1::DataSource files = source;
  return kind != nullptr && kind->FilesOf(&files).empty();
}

const v1::NormalizeSpec* NormalizeOf(const v1::DataSource& source) {
  const FieldDescriptor* field = FieldOf(source, "normalize");
  if (field == nullptr) return nullptr;
  const Message& message = MessageOf(source);
  if (!message.GetReflection()->HasField(message, field)) return nullptr;
  return google::protobuf::DynamicCastToGenerated<v1::NormalizeSpec>(
      &message.GetReflection()->GetMessage(message, field));
}

void SetNormalize(const v1::NormalizeSpec* spec, v1::DataSource* source) {
  const FieldDescriptor* field = FieldOf(*source, "normalize");
  if (field == nullptr) return;
  Message* message = MutableMessageOf(source);
  if (spec == nullptr) {
    message->GetReflection()->ClearField(message, field);
  } else {
    message->GetReflection()->MutableMessage(message, field)->CopyFrom(*spec);
  }
}

bool IsInherited(const v1::DataSource& source, absl::string_view field) {
  const SourceKind* const kind = KindOf(source);
  return kind != nullptr && (field == "normalize" ||
                             absl::c_linear_search(kind->Inherited(), field));
}

void InheritFields(const v1::DataSource& train, v1::DataSource* other) {
  if (KindOf(train) == nullptr || KindOf(train) != KindOf(*other)) return;
  v1::DataSource given = train;
  Message* const from = MutableMessageOf(&given);
  Message* const to = MutableMessageOf(other);
  for (int i = 0; i < to->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = to->GetDescriptor()->field(i);
    if (!IsInherited(train, field->name()) || HasValue(*to, *field)) {
      from->GetReflection()->ClearField(from, field);
    }
  }
  to->MergeFrom(*from);
}

SourceRows RowsOf(const v1::DataSource& source) {
  return {Number(source, "first_row"), Number(source, "rows")};
}

}  // namespace tributary
