// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/strategy_name.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/job/job_options.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using Words = std::vector<std::string>;

constexpr int kMostRanks = 1024;

// One kind of strategy: its key in the job file, its notation, and the function
// that reads its arguments and returns false when they are wrong.
struct Kind {
  const char* key;
  const char* usage;
  const char* what;
  bool cuts_model;
  bool (*apply)(const Words& arguments, StrategyChoice* choice);
};

bool ReadCount(const std::string& word, int least, int* count) {
  return absl::SimpleAtoi(word, count) && *count >= least &&
         *count <= kMostRanks;
}

bool ApplyParameterServer(const Words& arguments, StrategyChoice* choice) {
  std::string sync = "bsp";
  int number = 0;
  if (!arguments.empty() && arguments[0] != "bsp") {
    const bool numbered =
        arguments.size() == 2 &&
        ReadCount(arguments[1], arguments[0] == "ssp" ? 0 : 1, &number);
    if (arguments[0] == "async" && arguments.size() == 1) {
      sync = "async";
    } else if (arguments[0] == "ssp" && numbered) {
      sync = absl::StrFormat("{ssp: {staleness: %d}}", number);
    } else if (arguments == Words{"delayed"}) {
      sync = "{bsp: {delay: 1}}";
    } else if (arguments[0] == "local_sgd" && numbered) {
      sync = absl::StrFormat("{local_sgd: {period: %d}}", number);
    } else {
      return false;
    }
  } else if (arguments.size() > 1) {
    return false;
  }
  choice->has_servers = true;
  choice->overrides.push_back("strategy.parameter_server.sync=" + sync);
  return true;
}

bool ApplyAllReduce(const Words& arguments, StrategyChoice* choice) {
  const bool sharded = arguments == Words{"sharded"};
  if (!sharded && !arguments.empty()) return false;
  choice->overrides.push_back(
      absl::StrCat("strategy.all_reduce.sharded=", sharded ? "true" : "false"));
  return true;
}

bool ApplyDataParallel(const Words& arguments, StrategyChoice* choice) {
  choice->overrides.push_back("strategy.data_parallel={}");
  return arguments.empty();
}

bool ApplyTensorParallel(const Words& arguments, StrategyChoice* choice) {
  int ranks = 0;
  if (arguments.size() != 1 || !ReadCount(arguments[0], 2, &ranks)) {
    return false;
  }
  choice->model_ranks *= ranks;
  choice->overrides.push_back(
      absl::StrCat("strategy.tensor_parallel.ranks=", ranks));
  return true;
}

bool ApplyPipelineParallel(const Words& arguments, StrategyChoice* choice) {
  int stages = 0, micro_batches = 0;
  if (arguments.empty() || arguments.size() > 3 ||
      !ReadCount(arguments[0], 2, &stages)) {
    return false;
  }
  const std::string schedule = arguments.size() > 1 ? arguments[1] : "1f1b";
  if (schedule != "1f1b" && schedule != "gpipe") return false;
  std::string spec =
      absl::StrFormat("stages: %d, schedule: %s", stages, schedule);
  if (arguments.size() == 3) {
    if (!ReadCount(arguments[2], 1, &micro_batches)) return false;
    absl::StrAppend(&spec, ", micro_batches: ", micro_batches);
  }
  choice->model_ranks *= stages;
  choice->overrides.push_back(
      absl::StrCat("strategy.pipeline_parallel={", spec, "}"));
  return true;
}

constexpr Kind kKinds[] = {
    {"parameter_server",
     "parameter_server[:bsp|:delayed|:ssp:STALENESS|:async|:local_sgd:PERIOD]",
     "servers average and update; bsp unless said", false,
     ApplyParameterServer},
    {"all_reduce", "all_reduce[:sharded]",
     "workers average among themselves; each updates, or its shard", false,
     ApplyAllReduce},
    {"data_parallel", "data_parallel", "one process, a thread for each device",
     false, ApplyDataParallel},
    {"tensor_parallel", "tensor_parallel:RANKS",
     "every layer cut over so many workers", true, ApplyTensorParallel},
    {"pipeline_parallel",
     "pipeline_parallel:STAGES[:1f1b|:gpipe[:MICROBATCHES]]",
     "layers one after the other on so many workers", true,
     ApplyPipelineParallel},
};

const Kind* FindKind(const std::string& key) {
  for (const Kind& kind : kKinds) {
    if (key == kind.key) return &kind;
  }
  return nullptr;
}

std::string KnownKinds() {
  Words names = {kSingle};
  for (const Kind& kind : kKinds) names.emplace_back(kind.key);
  return absl::StrJoin(names, ", ");
}

// Adds one part of a name; "+" separates the parts.
absl::Status AddPart(absl::string_view name, const std::string& part,
                     StrategyChoice* choice, bool* has_data, bool* has_model) {
  const Words words = absl::StrSplit(part, ':');
  const Kind* const kind = FindKind(words[0]);
  if (kind == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("strategy \"", name, "\": there is no \"", words[0],
                     "\"; known are ", KnownKinds()));
  }
  if (!kind->cuts_model && std::exchange(*has_data, true)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "strategy \"", name, "\" names two ways to share the data"));
  }
  *has_model |= kind->cuts_model;
  if (!kind->apply(Words(words.begin() + 1, words.end()), choice)) {
    return absl::InvalidArgumentError(
        absl::StrCat("strategy \"", name, "\": wanted ", kind->usage));
  }
  return absl::OkStatus();
}

StrategyChoice Single() {
  StrategyChoice choice;
  (void)ApplyAllReduce({}, &choice);
  choice.name = kSingle;
  return choice;
}

}  // namespace

absl::StatusOr<StrategyChoice> ParseStrategy(absl::string_view name) {
  if (name == kSingle) return Single();
  StrategyChoice choice;
  bool has_data = false, has_model = false;
  const std::vector<std::string> parts = absl::StrSplit(name, '+');
  for (const std::string& part : parts) {
    TRIBUTARY_RETURN_IF_ERROR(
        AddPart(name, part, &choice, &has_data, &has_model));
  }
  if (!has_data) {  // the default needs no servers
    TRIBUTARY_RETURN_IF_ERROR(
        AddPart(name, "all_reduce", &choice, &has_data, &has_model));
  }
  choice.name = std::string(name);
  if (name == "parameter_server:bsp") choice.name = "parameter_server";
  return choice;
}

std::vector<StrategyChoice> DefaultStrategies(int workers) {
  Words names = {"parameter_server", "all_reduce", "all_reduce:sharded",
                 "data_parallel"};
  if (workers > 1) {
    names.push_back(absl::StrCat("tensor_parallel:", workers));
    names.push_back(absl::StrCat("pipeline_parallel:", workers, ":gpipe"));
    names.push_back(absl::StrCat("pipeline_parallel:", workers, ":1f1b"));
  }
  std::vector<StrategyChoice> choices;
  for (const std::string& name : names) {
    absl::StatusOr<StrategyChoice> choice = ParseStrategy(name);
    if (choice.ok()) choices.push_back(*std::move(choice));
  }
  return choices;
}

namespace {

std::string SyncName(const v1::SyncSpec& sync) {
  switch (sync.kind_case()) {
    case v1::SyncSpec::kSsp:
      return absl::StrCat(":ssp:", sync.ssp().staleness());
    case v1::SyncSpec::kAsync:
      return ":async";
    case v1::SyncSpec::kLocalSgd:
      return absl::StrCat(":local_sgd:", sync.local_sgd().period());
    case v1::SyncSpec::kBsp:
      return sync.bsp().delay() > 0 ? ":delayed" : "";
    case v1::SyncSpec::KIND_NOT_SET:
      break;
  }
  return "";
}

// How workers that hold the same part of the model are synchronized.
std::string DataName(const v1::JobSpec& job) {
  const Strategy strategy = StrategyOf(job);
  if (strategy.uses_servers()) {
    return strategy.name() + SyncName(job.strategy().parameter_server().sync());
  }
  const bool sharded = strategy.exchange == Exchange::kShardedAllReduce;
  return absl::StrCat(strategy.name(), sharded ? ":sharded" : "");
}

}  // namespace

std::string StrategyNameOf(const v1::JobSpec& job) {
  const Strategy strategy = StrategyOf(job);
  Words parts;
  if (strategy.tensor > 1) {
    parts.push_back(absl::StrCat("tensor_parallel:", strategy.tensor));
  }
  if (strategy.stages > 1) {
    const bool gpipe = strategy.schedule == PipelineSchedule::kGpipe;
    parts.push_back(absl::StrCat("pipeline_parallel:", strategy.stages,
                                 gpipe ? ":gpipe" : ":1f1b"));
    if (strategy.micro_batches != strategy.stages) {
      absl::StrAppend(&parts.back(), ":", strategy.micro_batches);
    }
  }
  const std::string data = DataName(job);
  if (parts.empty() || data != "all_reduce") parts.push_back(data);
  return absl::StrJoin(parts, "+");
}

void ClearStrategyCuts(v1::JobSpec* job) {
  job->mutable_strategy()->clear_tensor_parallel();
  job->mutable_strategy()->clear_pipeline_parallel();
}

std::string StrategyHelp() {
  std::string help =
      absl::StrFormat("  %s\n      one worker: the reference\n", kSingle);
  for (const Kind& kind : kKinds) {
    absl::StrAppendFormat(&help, "  %s\n      %s\n", kind.usage, kind.what);
  }
  return help;
}

}  // namespace tributary
