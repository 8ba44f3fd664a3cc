// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/replay/environment_difference.h"
#include "cli/replay/recorded_run.h"
#include "cli/replay/replay_steps.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "cli/terminal/interrupts.h"

namespace tributary {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kReplayDescription[] =
    "Computes one step of a run again and compares it with the record.";
constexpr char kReplayFooter[] =
    "Starts from the newest checkpoint before the step, or from the initial\n"
    "weights, and shows the step's loss beside the loss in metrics.jsonl, and\n"
    "the norm of each rank's gradient of each tensor. The run's training data\n"
    "must still be where its job.yaml says. Nothing in the run directory is\n"
    "changed.\n\n"
    "Examples:\n"
    "  tributary replay run --step 120\n"
    "  tributary replay run --step 120 --json\n\n"
    "Exit codes: 0 the losses have the same bits, 1 they differ or the step\n"
    "could not be computed, 2 wrong command line, or a run whose steps cannot\n"
    "be computed again.";

struct ReplayOptions {
  std::string run;
  int64_t step = 0;
  bool json = false;
};

std::string FromText(const ReplayedSteps& replayed) {
  return replayed.from.path.empty() ? "the initial weights"
                                    : StateText(replayed.from);
}

// NaN, which JSON does not have, becomes null.
Json NumberOrNull(const std::optional<double>& number) {
  return number.has_value() ? Json(*number) : Json(nullptr);
}

Json RankJson(const ReplayedRank& rank) {
  Json json = {{"rank", rank.rank},
               {"samples", nullptr},
               {"loss", NumberOrNull(rank.loss_mean)},
               {"tensors", Json::array()}};
  if (rank.samples) json["samples"] = *rank.samples;
  for (const ReplayedRank::Tensor& tensor : rank.tensors) {
    json["tensors"].push_back(
        {{"name", tensor.name},
         {"gradient_norm", NumberOrNull(tensor.gradient_norm)}});
  }
  return json;
}

Json CausesJson(const std::vector<EnvironmentDifference>& causes) {
  Json json = Json::array();
  for (const EnvironmentDifference& cause : causes) {
    if (!cause.matters()) continue;
    json.push_back({{"kind", KindName(cause.kind)},
                    {"what", cause.what},
                    {"a", cause.a},
                    {"b", cause.b}});
  }
  return json;
}

std::string ReplayJson(const ReplayOptions& options,
                       const ReplayedSteps& replayed, double recorded,
                       const std::vector<EnvironmentDifference>& causes) {
  const ReplayedStep& step = replayed.steps.at(options.step);
  Json json = {{"run", options.run},
               {"step", options.step},
               {"from_step", replayed.from.step},
               {"from", replayed.from.path},
               {"loss", step.loss},
               {"recorded_loss", recorded},
               {"equal", SameLoss(step.loss, recorded)},
               {"causes", CausesJson(causes)},
               {"ranks", Json::array()}};
  for (const ReplayedRank& rank : step.ranks) {
    json["ranks"].push_back(RankJson(rank));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string NormText(const std::optional<double>& norm) {
  return norm ? absl::StrFormat("%.9g", *norm) : "-";
}

void AppendRank(const ReplayedRank& rank, std::string* text) {
  absl::StrAppend(text, "rank ", rank.rank);
  if (rank.samples) {
    absl::StrAppend(text, ": ", *rank.samples, " samples, loss ",
                    LossText(*rank.loss_mean));
  }
  absl::StrAppend(text, "\n");
  int width = 0;
  for (const ReplayedRank::Tensor& tensor : rank.tensors) {
    width = std::max(width, static_cast<int>(tensor.name.size()));
  }
  double squares = 0;
  for (const ReplayedRank::Tensor& tensor : rank.tensors) {
    const double norm = tensor.gradient_norm.value_or(0);
    squares += norm * norm;
    absl::StrAppendFormat(text, "  %-*s  gradient norm %s\n", width,
                          tensor.name, NormText(tensor.gradient_norm));
  }
  absl::StrAppendFormat(text, "  %-*s  gradient norm %s\n", width, "all",
                        NormText(std::sqrt(squares)));
}

std::string ReplayText(const ReplayOptions& options,
                       const ReplayedSteps& replayed, double recorded,
                       const std::vector<EnvironmentDifference>& causes) {
  const ReplayedStep& step = replayed.steps.at(options.step);
  std::string text =
      absl::StrCat("step ", options.step, " of ", options.run,
                   ", computed again from ", FromText(replayed), "\nloss ",
                   LossText(step.loss), ", recorded ", LossText(recorded), ": ",
                   SameLoss(step.loss, recorded) ? "equal" : "different", "\n");
  if (const std::string cause = CauseText(causes); !cause.empty()) {
    absl::StrAppend(&text, "cause, in the run and now: ", cause, "\n");
  }
  for (const ReplayedRank& rank : step.ranks) AppendRank(rank, &text);
  return text;
}

int FailReplay(const absl::Status& status, int exit_code) {
  PrintError(status.message());
  return absl::IsCancelled(status) ? 128 + Interrupts::Requested() : exit_code;
}

absl::Status CheckRecorded(const RecordedRun& run, int64_t step) {
  if (run.losses.contains(step)) return absl::OkStatus();
  if (run.last_step == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(run.folder, " has recorded no step"));
  }
  if (step >= run.first_step && step <= run.last_step) {
    return absl::InvalidArgumentError(
        absl::StrCat(run.folder, " has no whole loss of step ", step,
                     " to compare with: its line in metrics.jsonl is missing, "
                     "or lacks reports of lost workers"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(run.folder, " has recorded steps ", run.first_step, " to ",
                   run.last_step, ", not step ", step));
}

int ReplayOneStep(const ReplayOptions& options) {
  const auto run = ReadRecordedRun(options.run);
  if (!run.ok()) return FailReplay(run.status(), kExitRefused);
  absl::Status status = CheckReplayable(*run);
  if (status.ok()) status = CheckRecorded(*run, options.step);
  if (status.ok()) status = CheckStartIsLeft(*run, options.step);
  if (!status.ok()) return FailReplay(status, kExitRefused);
  Interrupts::Install();
  const auto replayed = ReplaySteps(*run, options.step, options.step);
  if (!replayed.ok()) {
    return FailReplay(replayed.status(),
                      absl::IsInvalidArgument(replayed.status()) ? kExitRefused
                                                                 : kExitFailed);
  }
  const double recorded = run->losses.at(options.step);
  const bool equal = SameLoss(replayed->steps.at(options.step).loss, recorded);
  std::vector<EnvironmentDifference> causes;
  if (!equal) {
    causes = EnvironmentDifferences(run->environment, replayed->environment);
  }
  const std::string text =
      options.json ? ReplayJson(options, *replayed, recorded, causes)
                   : ReplayText(options, *replayed, recorded, causes);
  printf("%s", text.c_str());
  return equal ? kExitDone : kExitFailed;
}

}  // namespace

void AddReplayCommand(CommandLine& program) {
  auto options = std::make_shared<ReplayOptions>();
  CommandLine command = program.AddCommand("replay", kReplayDescription);
  command.SetFooter(kReplayFooter);
  command.AddOption("RUN", &options->run, "a run directory").Required();
  command.AddOption("--step", &options->step, "the step, from 1")
      .Required()
      .Positive();
  command.AddFlag("--json", &options->json, "print JSON");
  command.SetAction([options] { return ReplayOneStep(*options); });
}

}  // namespace tributary
