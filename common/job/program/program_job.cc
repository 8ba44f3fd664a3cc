// SPDX-License-Identifier: Apache-2.0
#include "common/job/program/program_job.h"

#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/job/job_file.h"
#include "common/job/resolve.h"
#include "common/job/yaml/override.h"
#include "common/schema/field_rule.h"
#include "common/schema/scalar_text.h"
#include "common/status/place.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr char kSetting[] = "the program's ";

// Fields of a job with the places where they are written.
struct Written {
  v1::JobSpec job;
  Places places;
};

// Adds the fields that the program has written to those of the job file.
class Merge {
 public:
  // `replaces`: fields that no --set has written may be replaced.
  Merge(const Places& from_places, bool replaces, Places* places)
      : from_places_(from_places), replaces_(replaces), places_(*places) {}

  // Moves the fields of `from`, whose path in the job is `path`, into `to`.
  absl::Status Into(const std::string& path, Message* from, Message* to) const {
    for (int i = 0; i < from->GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = from->GetDescriptor()->field(i);
      const std::string at = JoinPath(path, field->name());
      if (!IsWritten(from_places_, at, *from, field)) continue;
      TRIBUTARY_RETURN_IF_ERROR(CheckChoice(path, at, *to, field));
      LeaveOther(path, *to, field);
      const bool enters = !field->is_repeated() &&
                          field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      if (!enters && IsWritten(places_, at, *to, field)) {
        TRIBUTARY_RETURN_IF_ERROR(CheckEqual(at, *from, *to, field));
      }
      if (!enters || !places_.Has(at)) {
        places_.Record(at, from_places_.Find(at));
      }
      if (enters) {
        TRIBUTARY_RETURN_IF_ERROR(
            Into(at, from->GetReflection()->MutableMessage(from, field),
                 to->GetReflection()->MutableMessage(to, field)));
      } else {
        to->GetReflection()->SwapFields(from, to, {field});
      }
    }
    return absl::OkStatus();
  }

 private:
  // A value without presence counts as written when its place is known.
  static bool IsWritten(const Places& places, const std::string& path,
                        const Message& message, const FieldDescriptor* field) {
    return places.Has(path) || HasValue(message, *field);
  }

  // The other member of the field's oneof that the job has; null: none.
  static const FieldDescriptor* OtherChoice(const Message& to,
                                            const FieldDescriptor* field) {
    const auto* one = field->real_containing_oneof();
    if (one == nullptr) return nullptr;
    const FieldDescriptor* chosen =
        to.GetReflection()->GetOneofFieldDescriptor(to, one);
    return chosen == field ? nullptr : chosen;
  }

  absl::Status CheckChoice(const std::string& path, const std::string& at,
                           const Message& to,
                           const FieldDescriptor* field) const {
    const FieldDescriptor* other = OtherChoice(to, field);
    if (other == nullptr) return absl::OkStatus();
    return Contradiction(at, path, JoinPath(path, other->name()), other->name(),
                         field->name());
  }

  // Setting the field removes the other member of its oneof.
  void LeaveOther(const std::string& path, const Message& to,
                  const FieldDescriptor* field) const {
    const FieldDescriptor* other = OtherChoice(to, field);
    if (other != nullptr) places_.Forget(JoinPath(path, other->name()));
  }

  absl::Status CheckEqual(const std::string& at, const Message& from,
                          const Message& to,
                          const FieldDescriptor* field) const {
    const std::string mine = ValueText(from, field);
    const std::string others = ValueText(to, field);
    if (mine == others) return absl::OkStatus();
    return Contradiction(at, at, at, others, mine);
  }

  static std::string ValueText(const Message& message,
                               const FieldDescriptor* field) {
    if (!field->is_repeated()) return ScalarText(message, field, -1);
    const Reflection& reflection = *message.GetReflection();
    std::string text;
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      absl::StrAppend(
          &text, i == 0 ? "[" : ", ",
          field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE
              ? absl::StrCat("{",
                             reflection.GetRepeatedMessage(message, field, i)
                                 .ShortDebugString(),
                             "}")
              : ScalarText(message, field, i));
    }
    return text.empty() ? "[]" : text + "]";
  }

  // `set_at`: the path at which the program has written `mine`; `at`: the path
  // at which the job has `others`.
  absl::Status Contradiction(const std::string& set_at,
                             const std::string& field, const std::string& at,
                             const std::string& others,
                             const std::string& mine) const {
    const std::string place = places_.Find(at);
    if (replaces_ && !absl::StartsWith(place, kOverrideOrigin)) {
      return absl::OkStatus();
    }
    return from_places_.Error(set_at, field, " is ", others, " (", place,
                              "), but the program wants ", mine);
  }

  const Places& from_places_;
  const bool replaces_;
  Places& places_;
};

// The name that errors give the source.
std::string PlaceOf(const ProgramJobSource& source) {
  return source.file_name.empty() ? "the job" : source.file_name;
}

absl::StatusOr<Written> ReadAny(const ProgramJobSource& source) {
  Written base;
  base.places.Record("", PlaceOf(source));
  TRIBUTARY_RETURN_IF_ERROR(ReadFields(
      source.text, PlaceOf(source), source.overrides, &base.places, &base.job));
  MarkProgram(&base.job);
  return base;
}

absl::StatusOr<Written> ReadSource(const ProgramJobSource& source) {
  TRIBUTARY_ASSIGN_OR_RETURN(Written base, ReadAny(source));
  if (base.job.has_program()) return base;
  return base.places.Error(base.job.has_model() ? "model" : "data",
                           "the job has a ",
                           base.job.has_model() ? "model" : "data set",
                           " of its own, so no program trains it; start it "
                           "with `tributary train`");
}

// Relative paths of a source without a file, or from a checkpoint, start in the
// current directory.
absl::Status Resolve(const ProgramJobSource& source, JobPart part,
                     Written* written) {
  if (source.file_name.empty() && written->job.name().empty()) {
    written->job.set_name(source.name);
  }
  const bool has_file = !source.file_name.empty() && !source.text_yields;
  return ResolveJob(has_file ? source.file_name : "job", part, &written->places,
                    &written->job);
}

}  // namespace

absl::StatusOr<ProgramJobSource> ReadProgramJob(
    const std::string& path, std::vector<std::string> overrides) {
  ProgramJobSource source{.file_name = path, .overrides = std::move(overrides)};
  TRIBUTARY_ASSIGN_OR_RETURN(source.text, ReadJobText(path));
  return source;
}

absl::StatusOr<bool> IsForProgram(const ProgramJobSource& source) {
  TRIBUTARY_ASSIGN_OR_RETURN(const Written base, ReadAny(source));
  return base.job.has_program();
}

absl::StatusOr<v1::JobSpec> ParseProgramBase(const ProgramJobSource& source) {
  TRIBUTARY_ASSIGN_OR_RETURN(Written base, ReadSource(source));
  TRIBUTARY_RETURN_IF_ERROR(Resolve(source, JobPart::kBase, &base));
  return base.job;
}

absl::StatusOr<v1::JobSpec> ParseProgramJob(
    const ProgramJobSource& source, const std::vector<std::string>& settings) {
  TRIBUTARY_ASSIGN_OR_RETURN(Written base, ReadSource(source));
  Written set;
  for (const std::string& setting : settings) {
    TRIBUTARY_RETURN_IF_ERROR(
        ApplyOverride(kSetting, setting, &set.places, &set.job));
  }
  TRIBUTARY_RETURN_IF_ERROR(Merge(set.places, source.text_yields, &base.places)
                                .Into("", &set.job, &base.job));
  if (!base.job.training().has_optimizer()) {
    return base.places.Error(
        "training",
        "training.optimizer is missing: neither the job file nor the program "
        "sets it");
  }
  TRIBUTARY_RETURN_IF_ERROR(Resolve(source, JobPart::kWhole, &base));
  return base.job;
}

}  // namespace tributary
