// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "coordinator/core/progress.h"
#include "coordinator/run/record_file.h"
#include "coordinator/run/whole_lines.h"
#include "tributary/v1/coordinator_state.pb.h"

namespace tributary {

// How a coordinator that continues a run shows the earlier steps.
struct EarlierSteps {
  // Called first with the curve of the steps that are not read again, if any.
  std::function<void(const v1::StepsShown& shown)> on_shown;
  // Called with each step that the curve lacks; bytes_sent is not set.
  std::function<void(const StepRecord& record)> on_step;
};

// metrics.jsonl of a run, and coordinator.totals. The latter holds the sums
// over the first lines of metrics.jsonl and the number of bytes of these lines,
// so a coordinator that continues the run reads only the lines after them and
// starts quickly, however long the run is.
class MetricsFile {
 public:
  static absl::StatusOr<MetricsFile> Create(const std::string& folder);
  // Continues the files of an earlier coordinator, which may be damaged or
  // removed.
  static absl::StatusOr<MetricsFile> Open(const std::string& folder,
                                          const EarlierSteps& earlier);

  // Errors as RecordFile::Flush.
  void Add(const StepRecord& record);
  absl::Status Flush() { return file_.Flush(); }
  // As RecordFile::Sync; from any thread.
  absl::Status Sync() { return file_.Sync(); }
  // Writes coordinator.totals, unless it already includes the last step, or
  // some lines are not written yet. `shown`: of all steps so far.
  absl::Status SaveTotals(const v1::StepsShown& shown);

  // The sums over all lines; step 0: there are none.
  RecordedSteps Recorded() const;
  // The lines that Open could not read.
  const BadLines& bad_lines() const { return bad_lines_; }
  int64_t given_up() const { return file_.given_up(); }

 private:
  MetricsFile(std::string folder, RecordFile file)
      : folder_(std::move(folder)), file_(std::move(file)) {}

  void AddToTotals(const StepRecord& record);
  // Reads coordinator.totals and the lines after those that it sums up.
  void ReadEarlier(const EarlierSteps& earlier);

  std::string folder_;
  RecordFile file_;
  v1::RecordedTotals totals_;  // without `shown`
  int64_t saved_step_ = 0;     // the step of coordinator.totals
  BadLines bad_lines_;
};

}  // namespace tributary
