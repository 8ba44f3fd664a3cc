// SPDX-License-Identifier: Apache-2.0
#include "common/job/resolve.h"

#include <filesystem>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/job/job_options.h"
#include "common/job/optimizer_spec.h"
#include "common/job/sources/source_kind.h"
#include "common/job/yaml/field_rules.h"
#include "common/job/yaml/proto_reader.h"
#include "common/schema/scalar_text.h"
#include "common/status/status_macros.h"
#include "common/wire/wire_format.h"

namespace tributary {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;

// ---- defaults that depend on other fields

void ResolveSource(v1::DataSource* source) {
  const SourceKind* kind = KindOf(*source);
  if (kind != nullptr) kind->Resolve(source);
}

void ResolveData(uint64_t seed, v1::DataSpec* data) {
  if (data->has_train()) ResolveSource(data->mutable_train());
  if (data->has_test()) {
    InheritFields(data->train(), data->mutable_test());
    ResolveSource(data->mutable_test());
  }
  if (data->validation().has_source()) {
    v1::DataSource* source = data->mutable_validation()->mutable_source();
    InheritFields(data->train(), source);
    ResolveSource(source);
  }
  if (!data->has_shuffle()) data->mutable_shuffle()->set_seed(seed);
}

// Does not set the length of a schedule that lasts as long as the job, because
// a resumed job may be longer. LearningRateSchedule sets the length.
void ResolveSchedule(v1::ScheduleSpec* schedule) {
  v1::WarmupScheduleSpec* const warmup =
      schedule->has_warmup_cosine()   ? schedule->mutable_warmup_cosine()
      : schedule->has_warmup_linear() ? schedule->mutable_warmup_linear()
                                      : nullptr;
  if (warmup != nullptr && !warmup->has_eta_min()) warmup->set_eta_min(0);
}

// A compressing format gets error feedback unless the job says otherwise.
void ResolveWire(v1::ParameterServerSpec* server) {
  if (EncodingOf(server->wire())->compresses() &&
      !server->has_error_feedback()) {
    server->set_error_feedback(true);
  }
  if (server->wire() == v1::WIRE_FORMAT_TOP_K &&
      !server->has_top_k_fraction()) {
    server->set_top_k_fraction(kTopKFraction);
  }
}

absl::Status ResolveTraining(const Places& places, v1::TrainingSpec* training) {
  if (training->has_learning_rate_schedule()) {
    ResolveSchedule(training->mutable_learning_rate_schedule());
  }
  if (!training->has_optimizer()) return absl::OkStatus();
  ResolveOptimizer(training->mutable_optimizer());
  return ResolveParameterGroups(places, training);
}

void ResolveEvaluation(v1::JobSpec* job) {
  if (!job->has_evaluation() || !job->evaluation().metric().empty()) return;
  const v1::LossSpec& loss = job->training().loss();
  const bool by_loss =
      loss.has_mse() || SequenceLengthOf(job->data().train()) > 0;
  job->mutable_evaluation()->set_metric(loss.has_bce_with_logits() ? "auc"
                                        : by_loss                  ? "loss"
                                                  : "accuracy");
}

void ResolveDependentDefaults(const std::string& file_name, v1::JobSpec* job) {
  if (job->name().empty()) {
    job->set_name(std::filesystem::path(file_name).stem().string());
  }
  if (job->has_data()) {
    ResolveData(job->has_seed() ? job->seed() : 1, job->mutable_data());
  }
  if (job->has_strategy() && job->strategy().kind_case() == 0) {
    job->mutable_strategy()->mutable_parameter_server();  // for the data axis
  }
  if (job->strategy().has_parameter_server()) {
    ResolveWire(job->mutable_strategy()->mutable_parameter_server());
  }
  if (job->strategy().has_pipeline_parallel()) {
    v1::PipelineParallelSpec* pipeline =
        job->mutable_strategy()->mutable_pipeline_parallel();
    if (!pipeline->has_micro_batches() && pipeline->stages() > 0) {
      pipeline->set_micro_batches(pipeline->stages());
    }
  }
  if (job->strategy().parameter_server().sync().has_local_sgd()) {
    v1::OuterSpec* outer = job->mutable_strategy()
                               ->mutable_parameter_server()
                               ->mutable_sync()
                               ->mutable_local_sgd()
                               ->mutable_outer();
    if (!outer->has_nesterov()) {
      outer->set_nesterov(!outer->has_momentum() || outer->momentum() > 0);
    }
  }
  if (!StrategyOf(*job).uses_servers()) {
    job->mutable_cluster()->set_servers(0);  // so one file fits every strategy
  }
  ResolveEvaluation(job);
  if (job->has_program()) job->mutable_training();
}

// ---- each field by itself

constexpr char kLengthOfTraining[] = "tributary.v1.TrainingSpec.length";

// Fields that the job file of a program may leave out. The program has the
// model, the data and the loss; it sets the optimizer when it starts.
bool IsSaidByProgram(absl::string_view field) {
  return field == "JobSpec.model" || field == "JobSpec.data" ||
         field == "TrainingSpec.loss" || field == "TrainingSpec.optimizer" ||
         field == "TrainingSpec.gradient_accumulation";
}

class FieldResolver {
 public:
  FieldResolver(const Places& places, bool for_program, JobPart part)
      : places_(places),
        for_program_(for_program),
        is_whole_(part != JobPart::kBase) {}

  absl::Status Resolve(const std::string& path, Message* message) const {
    const Descriptor& type = *message->GetDescriptor();
    for (int i = 0; i < type.real_oneof_decl_count(); ++i) {
      TRIBUTARY_RETURN_IF_ERROR(
          CheckChosen(path, *message, *type.oneof_decl(i)));
    }
    for (int i = 0; i < type.field_count(); ++i) {
      TRIBUTARY_RETURN_IF_ERROR(ResolveField(
          JoinPath(path, type.field(i)->name()), message, type.field(i)));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckChosen(const std::string& path, const Message& message,
                           const OneofDescriptor& one) const {
    const bool optional =
        !is_whole_ || (for_program_ && one.full_name() == kLengthOfTraining);
    if (optional || message.GetReflection()->HasOneof(message, &one)) {
      return absl::OkStatus();
    }
    std::vector<std::string> names;
    for (int i = 0; i < one.field_count(); ++i) {
      names.push_back(one.field(i)->name());
    }
    return places_.Error(path, path, " wants ",
                         names.size() > 1 ? "one of " : "",
                         absl::StrJoin(names, ", "));
  }

  absl::Status ResolveField(const std::string& path, Message* message,
                            const FieldDescriptor* field) const {
    const auto& reflection = *message->GetReflection();
    const FieldRule* rule = FieldRuleOf(*field);
    if (field->is_repeated()) {
      return ResolveRepeated(path, message, field, rule);
    }
    if (!reflection.HasField(*message, field)) {
      if (for_program_ && IsSaidByProgram(RuleName(*field))) {
        return absl::OkStatus();
      }
      if (rule != nullptr && rule->fallback != nullptr) {
        TRIBUTARY_RETURN_IF_ERROR(SetFallback(*rule, message, field));
      } else if (rule != nullptr && rule->required &&
                 (field->has_presence() || !places_.Has(path))) {
        // A plain 0 or "" in the file gets a more specific message below.
        return is_whole_ ? Missing(path) : absl::OkStatus();
      } else if (field->has_presence()) {
        return absl::OkStatus();
      }
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      return Resolve(path, reflection.MutableMessage(message, field));
    }
    return CheckRange(path, *message, field, -1, rule);
  }

  absl::Status ResolveRepeated(const std::string& path, Message* message,
                               const FieldDescriptor* field,
                               const FieldRule* rule) const {
    const auto& reflection = *message->GetReflection();
    int size = reflection.FieldSize(*message, field);
    if (size == 0 && rule != nullptr && rule->fallback != nullptr) {
      TRIBUTARY_RETURN_IF_ERROR(SetFallback(*rule, message, field));
      size = reflection.FieldSize(*message, field);
    }
    if (size == 0 && rule != nullptr && rule->required) {
      if (!is_whole_) return absl::OkStatus();
      return places_.Has(path) ? places_.Error(path, path, " is empty")
                               : Missing(path);
    }
    for (int i = 0; i < size; ++i) {
      const std::string item = absl::StrCat(path, ".", i);
      TRIBUTARY_RETURN_IF_ERROR(
          field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE
              ? Resolve(item,
                        reflection.MutableRepeatedMessage(message, field, i))
              : CheckRange(item, *message, field, i, rule));
    }
    return absl::OkStatus();
  }

  // Parses the default as if it were in the file, but records no place for it.
  static absl::Status SetFallback(const FieldRule& rule, Message* message,
                                  const FieldDescriptor* field) {
    const YamlSource source{.name = std::string(rule.field),
                            .has_lines = false};
    TRIBUTARY_ASSIGN_OR_RETURN(const YamlNode node,
                               ParseYaml(rule.fallback, source));
    Places unused;
    return ProtoReader(source, &unused)
        .ReadField(node, std::string(rule.field), message, field);
  }

  absl::Status Missing(const std::string& path) const {
    const size_t dot = path.rfind('.');
    if (dot == std::string::npos) {
      return places_.Error("", path, " is missing");
    }
    const std::string owner = path.substr(0, dot);
    return places_.Error(owner, path.substr(dot + 1), " is missing in ", owner);
  }

  absl::Status CheckRange(const std::string& path, const Message& message,
                          const FieldDescriptor* field, int index,
                          const FieldRule* rule) const {
    if (rule == nullptr) return absl::OkStatus();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        if (!rule->required || index >= 0 ||
            !message.GetReflection()->GetString(message, field).empty()) {
          return absl::OkStatus();
        }
        return places_.Error(path, path, " is empty");
      case FieldDescriptor::CPPTYPE_BOOL:
      case FieldDescriptor::CPPTYPE_ENUM:
        return absl::OkStatus();
      default:
        break;
    }
    const std::string wrong =
        OutOfRange(rule->range, ScalarNumber(message, field, index),
                   ScalarText(message, field, index), IsBytes(*field));
    return wrong.empty() ? absl::OkStatus() : places_.Error(path, path, wrong);
  }

  const Places& places_;
  const bool for_program_;
  const bool is_whole_;
};

}  // namespace

std::string SourceOf(const v1::JobSpec& job, absl::string_view path) {
  constexpr absl::string_view kGroups = "training.parameter_groups.";
  if (path == "strategy.pipeline_parallel.micro_batches") {
    return "strategy.pipeline_parallel.stages";
  }
  absl::string_view source = path;
  if (absl::ConsumeSuffix(&source, ".text.stride")) {
    return absl::StrCat(source, ".text.length");
  }
  const std::string key = absl::StrCat(SourceKey(job.data().train()), ".");
  for (const absl::string_view beside :
       {"data.test.", "data.validation.source."}) {
    absl::string_view field = path;
    if (!absl::ConsumePrefix(&field, beside) ||
        !absl::ConsumePrefix(&field, key)) {
      continue;
    }
    return IsInherited(job.data().train(), field)
               ? absl::StrCat("data.train.", key, field)
               : "";
  }
  // "training.parameter_groups.0.optimizer.adam.beta1"
  const std::vector<std::string> parts = absl::StrSplit(path, '.');
  return absl::StartsWith(path, kGroups) && parts.size() == 6
             ? absl::StrCat("training.optimizer.", parts[4], ".", parts[5])
             : "";
}

bool HasDependentDefault(const v1::JobSpec& job, absl::string_view path) {
  if (path == "data.shuffle") {
    return job.data().shuffle().has_seed() &&
           job.data().shuffle().seed() == job.seed();
  }
  const v1::ParameterServerSpec& server = job.strategy().parameter_server();
  if (path == "strategy.parameter_server.top_k_fraction") {
    return server.top_k_fraction() == kTopKFraction;
  }
  return path == "strategy.parameter_server.error_feedback" &&
         server.error_feedback();
}

void MarkProgram(v1::JobSpec* job) {
  if (job->has_model() || job->has_data()) return;
  job->mutable_program();
}

absl::Status ResolveFields(const std::string& file_name, JobPart part,
                           Places* places, v1::JobSpec* job) {
  ResolveDependentDefaults(file_name, job);
  if (job->has_training()) {
    TRIBUTARY_RETURN_IF_ERROR(
        ResolveTraining(*places, job->mutable_training()));
  }
  const FieldResolver resolver(*places, job->has_program(), part);
  TRIBUTARY_RETURN_IF_ERROR(resolver.Resolve("", job));
  if (job->has_program()) return absl::OkStatus();
  TRIBUTARY_RETURN_IF_ERROR(ExpandPreset(places, job->mutable_model()));
  return resolver.Resolve("model", job->mutable_model());
}

}  // namespace tributary
