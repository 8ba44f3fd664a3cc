// SPDX-License-Identifier: Apache-2.0
#include "common/job/yaml/field_rules.h"

#include <iterator>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/limits.h"
#include "common/job/optimizer_spec.h"
#include "common/layers/layer_kind.h"

namespace tributary {
namespace {

constexpr Range kCount = Between(1, 1e15);  // remains exact as a double
constexpr Range kRows = Between(0, 1e15);
constexpr Range kBatch = Between(1, 1 << 24);

// In the schema's order. The defaults of losses are PyTorch's.
constexpr FieldRule kRules[] = {
    Required("JobSpec.name"),
    Required("JobSpec.model"),
    Required("JobSpec.data"),
    Required("JobSpec.training"),
    Default("JobSpec.strategy", "parameter_server"),
    Default("JobSpec.cluster", "{}"),
    Default("JobSpec.checkpoint", "{}"),
    Default("JobSpec.seed", "1"),

    Required("InitializeRuleSpec.tensors"),
    Required("MlpSpec.in", kExtent),
    Limits("MlpSpec.hidden", kExtent),
    Required("MlpSpec.out", kExtent),
    Limits("MlpSpec.dropout", kBelowOne),
    Required("CnnSpec.image", kSide),
    Default("CnnSpec.in_channels", "1", kExtent),
    Default("CnnSpec.channels", "[16, 32]", kExtent),
    Default("CnnSpec.hidden", "128", kExtent),
    Required("CnnSpec.classes", kExtent),
    Limits("CnnSpec.dropout", kBelowOne),
    Default("ResnetSpec.in_channels", "1", kExtent),
    Default("ResnetSpec.depth", "20", Between(4, 10000)),
    Default("ResnetSpec.channels", "[16, 32, 64]", kExtent),
    Required("ResnetSpec.classes", kExtent),
    Required("GptSpec.layers", Between(1, 1000)),
    Required("GptSpec.dim", Between(1, 1 << 24)),
    Required("GptSpec.heads", Between(1, 1 << 24)),
    Required("GptSpec.length", kExtent),
    Required("GptSpec.vocabulary", kTokens),
    Limits("GptSpec.dropout", kBelowOne),
    Default("GptSpec.tied", "true"),
    Default("GptSpec.qkv_bias", "true"),

    Required("DataSpec.train"),
    {.field = "ValidationSpec.fraction",
     .range = {.min = 0, .max = 1, .above_min = true, .below_max = true},
     .shorthand = true},
    Limits("DataSpec.batch_size", kBatch),
    Limits("DataSpec.global_batch_size", kBatch),
    Limits("ShuffleSpec.seed", kAny),
    Default("StreamSpec.buffer_bytes", "64MiB", Between(1 << 20, 1LL << 40)),
    Limits("NormalizeSpec.mean", kAny),
    Limits("NormalizeSpec.std", kPositive),
    Required("IdxSource.images"),
    Required("IdxSource.labels"),
    Limits("IdxSource.first_row", kRows),
    Limits("IdxSource.rows", kRows),
    Required("CsvSource.path"),
    Required("CsvSource.columns"),
    Limits("CsvSource.first_row", kRows),
    Limits("CsvSource.rows", kRows),
    Limits("MissingSpec.constant", kAny),
    Required("CsvColumns.label"),
    Required("NpySource.features"),
    Required("NpySource.labels"),
    Limits("NpySource.first_row", kRows),
    Limits("NpySource.rows", kRows),
    Required("SyntheticSource.kind"),
    Required("SyntheticSource.rows", kCount),
    Default("SyntheticSource.seed", "11"),
    Limits("SyntheticSource.first_row", kRows),
    Limits("SyntheticSource.length", Between(0, 1 << 24)),
    Required("TextSource.path"),
    Required("TextSource.length", Between(1, 1 << 24)),
    Limits("TextSource.stride", kExtent),
    Limits("TextSource.begin", kBelowOne),
    Default("TextSource.end", "1", {.min = 0, .max = 1, .above_min = true}),
    Limits("TextSource.first_row", kRows),
    Limits("TextSource.rows", kRows),

    Limits("TrainingSpec.epochs", Between(1, 1e9)),
    Limits("TrainingSpec.steps", kCount),
    Required("TrainingSpec.loss"),
    Required("TrainingSpec.optimizer"),
    Default("TrainingSpec.learning_rate_schedule", "constant"),
    Default("TrainingSpec.gradient_accumulation", "1", Between(1, 65536)),
    Limits("TrainingSpec.clip_norm", kNotNegative),
    Required("ParameterGroupSpec.parameters"),
    Limits("CrossEntropySpec.label_smoothing", kBelowOne),
    Limits("CrossEntropySpec.class_weights", kNotNegative),
    Default("BceWithLogitsSpec.pos_weight", "1", kPositive),

    Required("StepScheduleSpec.step_size", kCount),
    Default("StepScheduleSpec.gamma", "0.1", kPositive),
    Required("MultiStepScheduleSpec.milestones", kCount),
    Default("MultiStepScheduleSpec.gamma", "0.1", kPositive),
    Required("ExponentialScheduleSpec.gamma", kPositive),
    Limits("CosineScheduleSpec.t_max", kCount),
    Limits("CosineScheduleSpec.eta_min", kNotNegative),
    Limits("CosineScheduleSpec.warmup_steps", kRows),
    Default("LinearScheduleSpec.start_factor", "0.3333333333333333",
            {.min = 0, .max = 1, .above_min = true}),
    Default("LinearScheduleSpec.total_steps", "5", kCount),
    Required("WarmupScheduleSpec.warmup", kCount),
    Limits("WarmupScheduleSpec.total", kCount),
    Limits("WarmupScheduleSpec.eta_min", kNotNegative),

    Default("ParameterServerSpec.sync", "bsp"),
    Limits("ParameterServerSpec.bucket_bytes",
           Between(1 << 10, kMaxBucketBytes)),
    Default("ParameterServerSpec.sync_timeout_seconds", "120",
            {.min = 0, .max = 86400, .above_min = true}),
    Limits("ParameterServerSpec.top_k_fraction",
           {.min = 0, .max = 1, .above_min = true}),
    Default("AllReduceSpec.bucket_bytes", "25MiB", Between(1 << 10, 1 << 30)),
    Default("AllReduceSpec.first_bucket_bytes", "1MiB",
            Between(1 << 10, 1 << 30)),
    Default("AllReduceSpec.timeout_seconds", "120",
            {.min = 0, .max = 86400, .above_min = true}),
    Default("DataParallelSpec.bucket_bytes", "25MiB",
            Between(1 << 10, 1 << 30)),
    Default("DataParallelSpec.first_bucket_bytes", "1MiB",
            Between(1 << 10, 1 << 30)),
    Default("DataParallelSpec.timeout_seconds", "120",
            {.min = 0, .max = 86400, .above_min = true}),
    {.field = "TensorParallelSpec.ranks",
     .range = Between(1, 256),
     .required = true,
     .shorthand = true},
    Required("PipelineParallelSpec.stages", Between(1, 1024)),
    Limits("PipelineParallelSpec.micro_batches", Between(1, 65536)),
    Limits("BspSpec.backup_workers", Between(0, 1023)),
    Limits("BspSpec.delay", Between(0, 1)),
    Limits("SspSpec.staleness", kRows),
    Required("LocalSgdSpec.period", kCount),
    Default("LocalSgdSpec.outer", "{}"),
    Default("OuterSpec.learning_rate", "0.7", kPositive),
    Default("OuterSpec.momentum", "0.9", kBelowOne),
    Default("ClusterSpec.servers", "1", Between(0, 256)),
    Default("ClusterSpec.workers", "1", Between(1, kMaxRanks)),
    Default("ClusterSpec.max_restarts", "3", Between(0, 1000)),
    Default("ClusterSpec.lease_seconds", "10", {.min = 0.3, .max = 86400}),
    Limits("CheckpointSpec.every_steps", kRows),
    Default("CheckpointSpec.keep", "3", Between(1, 1000000)),
    Default("CheckpointSpec.at_end", "true"),
    Limits("EvaluationSpec.every_steps", kRows),
    Default("EvaluationSpec.keep_best", "false"),
    Limits("EvaluationSpec.stop_after", kRows),
    Required("TraceSpec.first_step", kCount),
    Required("TraceSpec.last_step", kCount),
};

}  // namespace

absl::Span<const FieldRule> AllFieldRules() {
  static const auto* const all = [] {
    auto* rules =
        new std::vector<FieldRule>(std::begin(kRules), std::end(kRules));
    for (const std::vector<FieldRule>& more :
         {LayerRules(), OptimizerRules()}) {
      rules->insert(rules->end(), more.begin(), more.end());
    }
    return rules;
  }();
  return *all;
}

const FieldRule* FieldRuleOf(const google::protobuf::FieldDescriptor& field) {
  static const auto* const by_name = [] {
    auto* map = new absl::flat_hash_map<absl::string_view, const FieldRule*>;
    for (const FieldRule& rule : AllFieldRules())
      map->emplace(rule.field, &rule);
    return map;
  }();
  const auto it = by_name->find(RuleName(field));
  return it == by_name->end() ? nullptr : it->second;
}

const google::protobuf::FieldDescriptor* ShorthandOf(
    const google::protobuf::Descriptor& type) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldRule* rule = FieldRuleOf(*type.field(i));
    if (rule != nullptr && rule->shorthand) return type.field(i);
  }
  return nullptr;
}

}  // namespace tributary
