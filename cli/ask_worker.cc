#include "cli/ask_worker.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/child_process.h"
#include "cli/interrupts.h"
#include "common/run/unique_fd.h"
#include "common/status_macros.h"

namespace tributary {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(20);

// A file that is gone with its owner.
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

absl::StatusOr<std::string> WorkerProgram() {
  std::error_code error;
  const std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string path = (self.parent_path() / "tributary-worker").string();
  if (error || access(path.c_str(), X_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(
        path, " is not there or not a program; it belongs beside tributary"));
  }
  return path;
}

}  // namespace

absl::StatusOr<std::string> AskWorker(const std::vector<std::string>& arguments,
                                      absl::Duration timeout) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string program, WorkerProgram());
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<TemporaryFile> output,
                             TemporaryFile::Create());
  std::vector<std::string> command = {program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<ChildProcess> worker,
                             ChildProcess::Start({.name = "tributary-worker",
                                                  .command = command,
                                                  .log_path = output->path()}));
  const absl::Time deadline = absl::Now() + timeout;
  while (!worker->Ended()) {
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("tributary-worker ", arguments[0], " took longer than ",
                       absl::FormatDuration(timeout)));
    }
    if (Interrupts::Requested() != 0) {
      return absl::CancelledError("interrupted");
    }
    absl::SleepFor(kLook);
  }
  const std::string line = LastLine(output->path());
  if (worker->succeeded()) return line;
  return absl::FailedPreconditionError(line.empty() ? worker->Obituary()
                                                    : line);
}

}  // namespace tributary
