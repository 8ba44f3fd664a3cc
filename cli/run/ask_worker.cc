// SPDX-License-Identifier: Apache-2.0
#include "cli/run/ask_worker.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "cli/run/processes/child_process.h"
#include "cli/run/processes/find_program.h"
#include "cli/terminal/exit_codes.h"
#include "cli/terminal/interrupts.h"
#include "common/base/unique_fd.h"
#include "common/host/steady_waits.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr absl::Duration kStart = absl::Seconds(10);
constexpr absl::Duration kAnswerLook = absl::Milliseconds(20);

// A file that is deleted with this object.
class TemporaryFile {
 public:
  static absl::StatusOr<std::unique_ptr<TemporaryFile>> Create() {
    std::error_code error;
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path(error);
    std::string path = (folder / "tributary-worker-XXXXXX").string();
    const UniqueFd fd(error ? -1 : mkstemp(path.data()));
    if (!fd.ok()) {
      return absl::UnavailableError(
          absl::StrCat("cannot create a file in ", folder.string()));
    }
    return std::unique_ptr<TemporaryFile>(new TemporaryFile(path));
  }
  ~TemporaryFile() { unlink(path_.c_str()); }

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

// A worker process whose output goes to a file of its own.
struct AskedWorker {
  std::unique_ptr<TemporaryFile> output;
  std::unique_ptr<ChildProcess> process;  // destroyed before its file

  static absl::StatusOr<AskedWorker> Start(
      const Host& host, const std::vector<std::string>& arguments) {
    AskedWorker asked;
    TRIBUTARY_ASSIGN_OR_RETURN(const std::string program,
                               FindProgram("tributary-worker"));
    TRIBUTARY_ASSIGN_OR_RETURN(asked.output, TemporaryFile::Create());
    std::vector<std::string> command = {program};
    command.insert(command.end(), arguments.begin(), arguments.end());
    TRIBUTARY_ASSIGN_OR_RETURN(
        asked.process, ChildProcess::Start({.name = "tributary-worker",
                                            .command = host.Command(command),
                                            .log_path = asked.output->path()}));
    return asked;
  }

  // Polls until `done` is true. Cancelled: interrupted. DeadlineExceeded: late.
  absl::Status WaitUntil(absl::Duration deadline,
                         absl::FunctionRef<bool()> done) const {
    while (!done()) {
      if (SteadyNow() > deadline) {
        return absl::DeadlineExceededError(absl::StrCat(
            absl::StrJoin(process->options().command, " "), " takes too long"));
      }
      if (Interrupts::Requested() != 0) {
        return absl::CancelledError("interrupted");
      }
      absl::SleepFor(kAnswerLook);
    }
    return absl::OkStatus();
  }

  absl::Status Failure() const {
    const std::string line = LastLine(output->path());
    if (process->exit_code() == kExitRefused && !line.empty()) {
      return absl::InvalidArgumentError(line);
    }
    return absl::FailedPreconditionError(line.empty() ? process->Obituary()
                                                      : line);
  }
};

class WorkerFarEnd final : public LinkFarEnd {
 public:
  WorkerFarEnd(AskedWorker worker, std::string address)
      : worker_(std::move(worker)), address_(std::move(address)) {}
  std::string address() const override { return address_; }

 private:
  const AskedWorker worker_;
  const std::string address_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> AskWorkers(
    const Host& host, int count, const std::vector<std::string>& arguments,
    absl::Duration timeout) {
  std::vector<AskedWorker> workers;
  for (int i = 0; i < count; ++i) {
    TRIBUTARY_ASSIGN_OR_RETURN(AskedWorker worker,
                               AskedWorker::Start(host, arguments));
    workers.push_back(std::move(worker));
  }
  const absl::Duration deadline = SteadyNow() + timeout;
  std::vector<std::string> lines;
  for (const AskedWorker& worker : workers) {
    TRIBUTARY_RETURN_IF_ERROR(
        worker.WaitUntil(deadline, [&] { return worker.process->Ended(); }));
    if (!worker.process->succeeded()) return worker.Failure();
    lines.push_back(LastLine(worker.output->path()));
  }
  return lines;
}

absl::StatusOr<std::unique_ptr<LinkFarEnd>> LinkFarEnd::Start(
    const Host& host, bool insecure_groups, absl::Duration timeout) {
  std::vector<std::string> arguments = {
      "--serve-links", host.At(0), "--serve-seconds",
      absl::StrCat(
          absl::ToInt64Seconds(absl::Ceil(timeout, absl::Seconds(1))))};
  if (insecure_groups) arguments.push_back("--insecure-groups");
  TRIBUTARY_ASSIGN_OR_RETURN(AskedWorker worker,
                             AskedWorker::Start(host, arguments));
  // A launcher may print other lines first.
  int port = 0;
  const auto listens = [&] {
    const std::string line = LastLine(worker.output->path());
    absl::string_view number = line;
    return absl::ConsumePrefix(&number, "listening on port ") &&
           absl::SimpleAtoi(number, &port);
  };
  TRIBUTARY_RETURN_IF_ERROR(worker.WaitUntil(SteadyNow() + kStart, [&] {
    return listens() || worker.process->Ended();
  }));
  if (port == 0) return worker.Failure();
  return std::make_unique<WorkerFarEnd>(std::move(worker), host.At(port));
}

}  // namespace tributary
