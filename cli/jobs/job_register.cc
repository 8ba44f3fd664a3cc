// SPDX-License-Identifier: Apache-2.0
#include "cli/jobs/job_register.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/files/atomic_file.h"
#include "common/host/address.h"
#include "common/host/process_state.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr char kSuffix[] = ".json";
constexpr unsigned int kOwnerAlone = 0600;
constexpr size_t kLongestFile = 64 << 10;
constexpr std::chrono::hours kKeepsGone{24};

std::string TextOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kLongestFile, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

absl::Status MakeFolder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(fs::path(folder).parent_path(), error);
  if (mkdir(folder.c_str(), 0700) == 0 || fs::is_directory(folder, error)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(folder, " cannot be created"));
}

}  // namespace

JobRegister::Entry::~Entry() {
  if (!path_.empty()) unlink(path_.c_str());
}

std::string JobRegister::PathOf(const RegisteredJob& job) const {
  return absl::StrCat(folder_, "/", job.host, "-", job.pid, kSuffix);
}

absl::StatusOr<std::unique_ptr<JobRegister::Entry>> JobRegister::Add(
    RegisteredJob job) const {
  if (folder_.empty()) return nullptr;
  TRIBUTARY_RETURN_IF_ERROR(MakeFolder(folder_));
  const auto now = fs::file_time_type::clock::now();
  for (const KnownJob& known : Read()) {
    std::error_code error;
    const auto written = fs::last_write_time(PathOf(known.job), error);
    if (!error && known.gone() && now - written > kKeepsGone) Drop(known.job);
  }
  job.host = HostName();
  job.pid = getpid();
  job.start_ticks = LookAtProcess(job.pid).start_ticks;
  const std::string path = PathOf(job);
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                             AtomicFile::Create(path, kOwnerAlone));
  TRIBUTARY_RETURN_IF_ERROR(file->Append(RegisteredJobJson(job)));
  TRIBUTARY_RETURN_IF_ERROR(file->Commit());
  return std::make_unique<Entry>(path);
}

std::vector<KnownJob> JobRegister::Read() const {
  std::vector<KnownJob> jobs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (entry.path().extension() != kSuffix) continue;
    absl::StatusOr<RegisteredJob> job = ReadRegisteredJob(TextOf(entry.path()));
    // A file with another name is another program's file, or a copy.
    if (!job.ok() || PathOf(*job) != entry.path().string()) continue;
    const CoordinatorLife life = LookAtCoordinator(*job);
    jobs.push_back({*std::move(job), life});
  }
  std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
    return a.job.started_micros < b.job.started_micros;
  });
  return jobs;
}

void JobRegister::Drop(const RegisteredJob& job) const {
  unlink(PathOf(job).c_str());
}

std::string JobRegisterFolder() {
  constexpr char kFolder[] = "/tributary/jobs";
  // A relative XDG_STATE_HOME is not valid and is ignored.
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && state[0] == '/') return absl::StrCat(state, kFolder);
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') return "";
  return absl::StrCat(home, "/.local/state", kFolder);
}

CoordinatorLife LookAtCoordinator(const RegisteredJob& job) {
  if (job.host != HostName()) return CoordinatorLife::kElsewhere;
  const ProcessFacts facts = LookAtProcess(job.pid);
  const bool is_another =
      job.start_ticks != 0 && job.start_ticks != facts.start_ticks;
  if (facts.state == ProcessState::kGone || is_another) {
    return CoordinatorLife::kGone;
  }
  return facts.state == ProcessState::kStopped ? CoordinatorLife::kStopped
                                               : CoordinatorLife::kRuns;
}

std::string RegisteredJobJson(const RegisteredJob& job) {
  const Json json = {{"name", job.name},
                     {"job_id", job.job_id},
                     {"coordinator", job.coordinator},
                     {"encrypted", job.encrypted},
                     {"run_directory", job.run_directory},
                     {"command", job.command},
                     {"host", job.host},
                     {"pid", job.pid},
                     {"start_ticks", job.start_ticks},
                     {"started_micros", job.started_micros}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<RegisteredJob> ReadRegisteredJob(absl::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), /*cb=*/nullptr,
                                /*allow_exceptions=*/false);
  const auto string = [&json](const char* key, std::string* value) {
    if (!json.contains(key) || !json[key].is_string()) return false;
    *value = json[key].get<std::string>();
    return true;
  };
  const auto number = [&json](const char* key, auto* value) {
    if (!json.contains(key) || !json[key].is_number_unsigned()) return false;
    *value = json[key].template get<std::decay_t<decltype(*value)>>();
    return true;
  };
  RegisteredJob job;
  if (!json.is_object() || !string("name", &job.name) ||
      !number("job_id", &job.job_id) ||
      !string("coordinator", &job.coordinator) ||
      !string("run_directory", &job.run_directory) ||
      !string("host", &job.host) || !number("pid", &job.pid) ||
      !number("start_ticks", &job.start_ticks) ||
      !number("started_micros", &job.started_micros)) {
    return absl::InvalidArgumentError("not a job of the register");
  }
  string("command", &job.command);
  job.encrypted = json.value("encrypted", Json(false)) == Json(true);
  return job;
}

}  // namespace tributary
