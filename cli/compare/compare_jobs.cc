// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/compare_jobs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/job/job_file.h"
#include "common/job/job_options.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// The job without settings that disturb a measurement or that only some
// strategies support.
v1::JobSpec Neutral(const v1::JobSpec& job) {
  v1::JobSpec neutral = job;
  if (job.data().batch_size() > 0) {
    neutral.mutable_data()->set_global_batch_size(job.data().batch_size() *
                                                  StrategyOf(job).mesh().data);
  }
  neutral.clear_checkpoint();
  neutral.mutable_checkpoint()->set_at_end(false);
  neutral.clear_evaluation();
  neutral.mutable_cluster()->set_on_worker_loss(v1::WORKER_LOSS_WAIT);
  neutral.mutable_cluster()->set_max_restarts(0);
  return neutral;
}

class Maker {
 public:
  explicit Maker(const CompareJobsOptions& options)
      : job_(Neutral(options.job)),
        own_name_(StrategyNameOf(options.job)),
        many_workers_(options.workers.size() > 1),
        many_servers_(options.servers.size() > 1) {}

  absl::StatusOr<CompareJob> Make(const StrategyChoice& choice, int workers,
                                  int servers) const {
    if (workers % choice.model_ranks != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(choice.name, " wants a multiple of ", choice.model_ranks,
                       " workers, got ", workers));
    }
    v1::JobSpec job = job_;
    std::vector<std::string> overrides;
    if (choice.name != own_name_) {  // the job's own is run unchanged
      ClearStrategyCuts(&job);
      overrides = choice.overrides;
    }
    overrides.push_back(absl::StrCat("cluster.workers=", workers));
    overrides.push_back(
        absl::StrCat("cluster.servers=", choice.has_servers ? servers : 0));
    absl::StatusOr<v1::JobSpec> made =
        ParseJob(JobToYaml(job), "the job", overrides);
    if (!made.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(choice.name, " with ", workers,
                       " workers: ", made.status().message()));
    }
    return CompareJob{.name = choice.name,
                      .folder = Folder(choice, workers, servers),
                      .job = *std::move(made)};
  }

  const std::string& own_name() const { return own_name_; }

 private:
  std::string Folder(const StrategyChoice& choice, int workers,
                     int servers) const {
    std::string folder = absl::StrReplaceAll(choice.name, {{":", "-"}});
    if (choice.name == kSingle) return folder;
    if (many_workers_) absl::StrAppend(&folder, "-w", workers);
    if (many_servers_ && choice.has_servers) {
      absl::StrAppend(&folder, "-s", servers);
    }
    return folder;
  }

  const v1::JobSpec job_;
  const std::string own_name_;
  const bool many_workers_;
  const bool many_servers_;
};

// The strategies to run; by default the job's own first.
absl::StatusOr<std::vector<StrategyChoice>> Choices(
    const CompareJobsOptions& options, const std::string& own_name,
    int workers) {
  if (!options.strategies.empty()) return options.strategies;
  TRIBUTARY_ASSIGN_OR_RETURN(StrategyChoice own, ParseStrategy(own_name));
  std::vector<StrategyChoice> choices = {std::move(own)};
  for (StrategyChoice& choice : DefaultStrategies(workers)) {
    if (choice.name != own_name) choices.push_back(std::move(choice));
  }
  return choices;
}

bool Has(const std::vector<CompareJob>& jobs, const std::string& folder) {
  return std::any_of(
      jobs.begin(), jobs.end(),
      [&folder](const CompareJob& job) { return job.folder == folder; });
}

}  // namespace

absl::StatusOr<CompareJobs> MakeCompareJobs(const CompareJobsOptions& options) {
  const Maker maker(options);
  const v1::ClusterSpec& cluster = options.job.cluster();
  std::vector<int> workers = options.workers, servers = options.servers;
  if (workers.empty()) workers = {cluster.workers()};
  if (servers.empty()) servers = {std::max(1, cluster.servers())};
  CompareJobs made;
  TRIBUTARY_ASSIGN_OR_RETURN(const StrategyChoice single,
                             ParseStrategy(kSingle));
  TRIBUTARY_ASSIGN_OR_RETURN(CompareJob reference, maker.Make(single, 1, 1));
  made.jobs.push_back(std::move(reference));
  for (int w : workers) {
    TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<StrategyChoice> choices,
                               Choices(options, maker.own_name(), w));
    for (const StrategyChoice& choice : choices) {
      for (int s : servers) {
        absl::StatusOr<CompareJob> job = maker.Make(choice, w, s);
        if (job.ok() && Has(made.jobs, job->folder)) continue;
        if (job.ok()) {
          made.jobs.push_back(*std::move(job));
        } else if (options.strategies.empty()) {
          made.notes.push_back(
              absl::StrCat("left out: ", job.status().message()));
          break;  // another number of servers would not help
        } else {
          return job.status();
        }
      }
    }
  }
  return made;
}

}  // namespace tributary
