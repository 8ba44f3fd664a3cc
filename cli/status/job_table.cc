// SPDX-License-Identifier: Apache-2.0
#include "cli/status/job_table.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/jobs/run_outcome.h"
#include "cli/terminal/format.h"
#include "common/status/printable.h"
#include "coordinator/job/job_status.h"

namespace tributary {
namespace {

constexpr size_t kColumns = 5;
using Row = std::array<std::string, kColumns>;

std::string StateOf(const ListedJob& job) {
  if (!job.status) return job.state;
  std::string text = PhaseWord(job.status->phase());
  if (job.status->step() > 0) {
    absl::StrAppend(&text, ", step ", WithThousands(job.status->step()));
    if (job.status->total_steps() > 0) {
      absl::StrAppend(&text, " of ", WithThousands(job.status->total_steps()));
    }
  }
  return text;
}

Row RowOf(const ListedJob& job, int64_t now_micros) {
  const RegisteredJob& known = job.known.job;
  const double age =
      1e-6 * static_cast<double>(now_micros - known.started_micros);
  return {Printable(known.name), FormatElapsed(std::max(0.0, age)),
          Printable(known.coordinator),
          known.run_directory.empty() ? "-" : Printable(known.run_directory),
          Printable(StateOf(job))};
}

}  // namespace

std::string JobTable(const std::vector<ListedJob>& jobs, int64_t now_micros) {
  if (jobs.empty()) return "no job of yours runs on this machine\n";
  std::vector<Row> rows = {
      {"NAME", "AGE", "COORDINATOR", "RUN DIRECTORY", "STATE"}};
  for (const ListedJob& job : jobs) rows.push_back(RowOf(job, now_micros));
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const Row& row : rows) {
    for (size_t i = 0; i + 1 < kColumns; ++i) {
      absl::StrAppend(&text, row[i],
                      std::string(widths[i] - row[i].size() + 2, ' '));
    }
    absl::StrAppend(&text, row.back(), "\n");
  }
  return text;
}

std::string JobListJson(const std::vector<ListedJob>& jobs) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const ListedJob& job : jobs) {
    const RegisteredJob& known = job.known.job;
    Json json = {{"name", known.name},
                 {"job_id", absl::StrCat(known.job_id)},
                 {"coordinator", known.coordinator},
                 {"run_directory", known.run_directory},
                 {"host", known.host},
                 {"pid", known.pid},
                 {"started_micros", known.started_micros},
                 {"state", StateOf(job)}};
    if (job.status) {
      json["phase"] = PhaseWord(job.status->phase());
      json["step"] = job.status->step();
      json["total_steps"] = job.status->total_steps();
    }
    list.push_back(std::move(json));
  }
  return list.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tributary
