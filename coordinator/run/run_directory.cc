// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/run_directory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/files/atomic_file.h"
#include "common/files/safetensors.h"
#include "common/files/sha256.h"
#include "common/host/small_file.h"
#include "common/job/job_file.h"
#include "common/status/status_macros.h"
#include "coordinator/core/state_file.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;

constexpr int kMostRunsASecond = 1000;
constexpr char kStateFile[] = "/coordinator.state";
constexpr char kSummaryFile[] = "/summary.json";
constexpr char kTimelineFile[] = "/timeline.jsonl";
constexpr char kEventsFile[] = "/events.jsonl";
// Holds EventHistory::kMaxEvents lines of events.jsonl.
constexpr std::streamoff kEventsTailBytes = 64 << 10;

// Makes a safe file name: every other character becomes "-".
std::string FileName(const std::string& name) {
  std::string safe = name.empty() ? "job" : name;
  for (char& c : safe) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '_') c = '-';
  }
  if (safe[0] == '.') safe[0] = '-';
  return safe.substr(0, 100);
}

std::string DefaultName(const std::string& name, std::time_t started) {
  std::tm local{};
  localtime_r(&started, &local);
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
  return absl::StrCat("runs/", FileName(name), "-", stamp);
}

absl::Status CannotCreate(const std::string& path, const std::error_code& why) {
  return absl::UnavailableError(
      absl::StrCat("cannot create ", path, ": ", why.message()));
}

// Creates a new directory; two runs that start at the same time get different
// ones.
absl::StatusOr<std::string> MakeDefault(const std::string& job_name,
                                        std::time_t started) {
  const std::string name = DefaultName(job_name, started);
  std::error_code error;
  fs::create_directories("runs", error);
  if (error) return CannotCreate("runs", error);
  for (int i = 1; i <= kMostRunsASecond; ++i) {
    const std::string path = i == 1 ? name : absl::StrCat(name, "-", i);
    if (fs::create_directory(path, error)) return path;
    if (error) return CannotCreate(path, error);
  }
  return absl::AlreadyExistsError(
      absl::StrCat("run directory ", name, " and its numbers are all taken"));
}

// The limit is small: when the disk is full, the timeline is dropped first.
absl::StatusOr<RecordFile> OpenTimeline(const std::string& path) {
  return RecordFile::Open(path, /*max_kept=*/16 << 20);
}

absl::StatusOr<RecordFile> OpenEvents(const std::string& path) {
  return RecordFile::Open(path, /*max_kept=*/1 << 20);
}

// The newest events of the file. Lines that cannot be read are left out: the
// job does not depend on them.
std::vector<HistoryEvent> ReadEvents(const std::string& path) {
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = stream.tellg();
  stream.seekg(std::max<std::streamoff>(0, size - kEventsTailBytes));
  std::vector<HistoryEvent> events;
  for (std::string line; std::getline(stream, line);) {
    if (std::optional<HistoryEvent> event = ReadEventLine(line)) {
      events.push_back(*std::move(event));
    }
  }
  const size_t old =
      events.size() - std::min(events.size(), EventHistory::kMaxEvents);
  events.erase(events.begin(), events.begin() + static_cast<long>(old));
  return events;
}

// True when the directory holds nothing but the lock of a coordinator that was
// killed.
bool IsEmpty(const std::string& path) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.path().filename() != RunLock::kFile) return false;
  }
  return !error;
}

absl::Status NotEmpty(const std::string& path) {
  return absl::AlreadyExistsError(absl::StrCat(
      "run directory ", path, " is not empty; choose another, or remove it"));
}

absl::StatusOr<std::string> MakeGiven(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error)) {
    if (!fs::is_directory(path, error)) {
      return absl::AlreadyExistsError(
          absl::StrCat("run directory ", path, " is a file"));
    }
    if (!IsEmpty(path)) return NotEmpty(path);
    return path;
  }
  fs::create_directories(path, error);
  if (error) return CannotCreate(path, error);
  return path;
}

}  // namespace

absl::StatusOr<std::string> RunDirectory::MakeFolder(const std::string& path,
                                                     const std::string& name,
                                                     std::time_t started) {
  return path.empty() ? MakeDefault(name, started) : MakeGiven(path);
}

absl::StatusOr<std::unique_ptr<RunDirectory>> RunDirectory::Create(
    const std::string& path, const v1::JobSpec& job, std::time_t started) {
  TRIBUTARY_ASSIGN_OR_RETURN(std::string made,
                             MakeFolder(path, job.name(), started));
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<RunLock> lock,
                             RunLock::Take(made));
  // Another run may have started and ended here since the first check.
  if (!IsEmpty(made)) return NotEmpty(made);
  std::unique_ptr<RunDirectory> run(new RunDirectory(std::move(lock)));
  std::error_code error;
  fs::create_directory(run->path_ + "/logs", error);
  if (error) return CannotCreate(run->path_ + "/logs", error);
  TRIBUTARY_RETURN_IF_ERROR(run->SaveJob(job));
  TRIBUTARY_ASSIGN_OR_RETURN(run->metrics_, MetricsFile::Create(run->path_));
  TRIBUTARY_ASSIGN_OR_RETURN(run->timeline_,
                             OpenTimeline(run->path_ + kTimelineFile));
  TRIBUTARY_ASSIGN_OR_RETURN(run->history_,
                             OpenEvents(run->path_ + kEventsFile));
  TRIBUTARY_ASSIGN_OR_RETURN(
      run->events_,
      EventFile::Create(run->path_, static_cast<double>(started)));
  return run;
}

absl::Status RunDirectory::SaveJob(const v1::JobSpec& job) {
  return WriteFileAtomically(path_ + "/job.yaml", JobToYaml(job));
}

absl::StatusOr<std::unique_ptr<RunDirectory>> RunDirectory::Open(
    std::unique_ptr<RunLock> lock, std::time_t started,
    const EarlierSteps& earlier) {
  const std::string trace = lock->directory() + kTraceFile;
  if (std::error_code error; fs::exists(trace, error)) {
    TRIBUTARY_RETURN_IF_ERROR(CutToWholeLines(trace));
  }
  std::unique_ptr<RunDirectory> run(new RunDirectory(std::move(lock)));
  const std::string& path = run->path_;
  RemoveHalfWritten(path);
  TRIBUTARY_ASSIGN_OR_RETURN(run->metrics_, MetricsFile::Open(path, earlier));
  BadLines bad;
  TRIBUTARY_ASSIGN_OR_RETURN(run->earlier_evaluations_,
                             run->evaluations_.Read(&bad));
  for (const std::string& damage :
       {run->metrics_->bad_lines().Text(path + "/metrics.jsonl"),
        bad.Text(path + "/evaluations.jsonl")}) {
    if (!damage.empty()) run->damage_.push_back(damage);
  }
  for (const char* file : {kTimelineFile, kEventsFile}) {
    if (std::error_code error; fs::exists(path + file, error)) {
      TRIBUTARY_RETURN_IF_ERROR(CutToWholeLines(path + file));
    }
  }
  TRIBUTARY_ASSIGN_OR_RETURN(run->timeline_,
                             OpenTimeline(path + kTimelineFile));
  run->earlier_events_ = ReadEvents(path + kEventsFile);
  TRIBUTARY_ASSIGN_OR_RETURN(run->history_, OpenEvents(path + kEventsFile));
  TRIBUTARY_ASSIGN_OR_RETURN(
      run->events_, EventFile::Create(path, static_cast<double>(started)));
  return run;
}

absl::Status RunDirectory::SaveState(const v1::CoordinatorState& state) const {
  return WriteFileAtomically(path_ + kStateFile, EncodeState(state));
}

absl::StatusOr<v1::CoordinatorState> RunDirectory::ReadState(
    const std::string& path) {
  const std::string file = path + kStateFile;
  TRIBUTARY_RETURN_IF_ERROR(CheckReadable(file));
  if (!std::ifstream(file)) {
    return absl::NotFoundError(absl::StrCat("there is no ", file));
  }
  return DecodeState(file, ReadText(file));
}

absl::Status RunDirectory::AddSteps(const std::vector<StepRecord>& records,
                                    double wall_seconds) {
  for (const StepRecord& record : records) {
    metrics_->Add(record);
    if (!record.ranks.empty()) timeline_->Add(TimelineLine(record) + "\n");
    std::map<std::string, double> values = {
        {"train/learning_rate", record.learning_rate},
        {"train/samples_per_second", record.samples_per_second},
        {"train/step_seconds", record.seconds.step}};
    if (record.loss) values["train/loss"] = *record.loss;
    events_->Add(record.step, wall_seconds, values);
  }
  return Flush();
}

absl::Status RunDirectory::Flush() {
  absl::Status full = lock_->Check();
  if (!full.ok()) return full;
  for (const absl::Status& status :
       {metrics_->Flush(), timeline_->Flush(), history_->Flush(),
        trace_.Flush(), events_->Flush()}) {
    if (status.ok()) continue;
    if (!absl::IsResourceExhausted(status)) return status;
    full.Update(status);
  }
  return full;
}

int64_t RunDirectory::given_up() const {
  return metrics_->given_up() + timeline_->given_up() + history_->given_up() +
         trace_.given_up() + events_->file().given_up();
}

absl::Status RunDirectory::AddEvaluations(
    const std::vector<EvaluationRecord>& evaluations, double wall_seconds) {
  for (const EvaluationRecord& evaluation : evaluations) {
    std::map<std::string, double> values;
    for (const auto& [name, value] : evaluation.metrics) {
      values[absl::StrCat(evaluation.set, "/", name)] = value;
    }
    events_->Add(evaluation.step, wall_seconds, values);
  }
  return Flush();
}

absl::Status RunDirectory::AddTrace(const std::vector<TraceBatch>& batches) {
  for (const TraceBatch& batch : batches) {
    TRIBUTARY_RETURN_IF_ERROR(trace_.Add(batch));
  }
  return Flush();
}

absl::Status RunDirectory::AddEvents(const std::vector<HistoryEvent>& events) {
  for (const HistoryEvent& event : events) {
    history_->Add(EventLine(event) + "\n");
  }
  return Flush();
}

absl::StatusOr<std::string> RunDirectory::SaveWeights(
    const FinalWeights& weights) {
  std::vector<const float*> tensors;
  for (const std::vector<float>& tensor : weights.tensors) {
    tensors.push_back(tensor.data());
  }
  TRIBUTARY_RETURN_IF_ERROR(WriteSafetensors(path_ + "/weights.safetensors",
                                             weights.parameters, tensors));
  return WeightsSha256(weights.parameters, tensors);
}

absl::StatusOr<std::string> RunDirectory::ReadWeightsSha256(
    const ParameterSpecs& parameters) const {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::vector<std::vector<float>> weights,
      ReadSafetensors(path_ + "/weights.safetensors", parameters));
  std::vector<const float*> tensors;
  for (const std::vector<float>& tensor : weights) {
    tensors.push_back(tensor.data());
  }
  return WeightsSha256(parameters, tensors);
}

bool RunDirectory::HasSummary(const std::string& path) {
  std::error_code error;
  return fs::exists(path + kSummaryFile, error);
}

absl::Status RunDirectory::SaveTargets(const std::string& json) {
  return WriteFileAtomically(path_ + "/prometheus-targets.json", json);
}

absl::Status RunDirectory::SaveModel(
    const v1::ModelRecord& model,
    const std::optional<ModelMetrics>& metrics) const {
  return WriteFileAtomically(path_ + kModelFile,
                             ModelRecordJson(model, metrics));
}

absl::Status RunDirectory::SaveEnvironment(const std::string& json) const {
  return WriteFileAtomically(path_ + "/environment.json", json);
}

absl::Status RunDirectory::SaveSummary(const RunSummary& summary) {
  return WriteFileAtomically(path_ + kSummaryFile, SummaryJson(summary));
}

}  // namespace tributary
