// SPDX-License-Identifier: Apache-2.0
#include "cli/run/check_data.h"

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_split.h"
#include "cli/run/ask_worker.h"
#include "cli/run/processes/hosts.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "cli/terminal/interrupts.h"

namespace tributary {
namespace {

constexpr absl::Duration kTimeout = absl::Minutes(30);

}  // namespace

absl::Status CheckDataFits(const std::string& job_path,
                           const std::vector<std::string>& overrides,
                           std::string* data_record) {
  std::vector<std::string> arguments = {"--check-data", job_path};
  for (const std::string& change : overrides) {
    arguments.insert(arguments.end(), {"--set", change});
  }
  const absl::StatusOr<std::vector<std::string>> lines =
      AskWorkers(Host(), 1, arguments, kTimeout);
  if (lines.ok()) {
    const nlohmann::json found =
        nlohmann::json::parse(lines->front(), nullptr,
                              /*allow_exceptions=*/false);
    if (found.is_object() && found.contains("note")) {
      const std::string notes = found.value("note", "");
      for (absl::string_view note : absl::StrSplit(notes, '\n')) {
        PrintNote(note);
      }
    }
    if (found.is_object() && data_record != nullptr) {
      *data_record = found.value("data", nlohmann::json::object()).dump();
    }
  }
  const absl::Status& status = lines.status();
  const bool told =
      absl::IsInvalidArgument(status) || absl::IsCancelled(status);
  return told ? status : absl::OkStatus();
}

int RefuseData(const absl::Status& status) {
  PrintError(status.message());
  return absl::IsCancelled(status) ? 128 + Interrupts::Requested()
                                   : kExitRefused;
}

}  // namespace tributary
