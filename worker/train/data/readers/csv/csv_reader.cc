// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/csv/csv_reader.h"

#include "common/status/status_macros.h"
#include "worker/train/data/readers/csv/csv_table.h"

namespace tributary {

absl::StatusOr<RawData> ReadTrainingCsv(const InputFiles& files,
                                        const CsvOptions& options,
                                        TargetKind kind, CsvWords* words) {
  CsvTable table(files, options, kind);
  TRIBUTARY_RETURN_IF_ERROR(table.Read());
  *words = table.Words();
  return table.Finish(*words);
}

absl::StatusOr<RawData> ReadTestCsv(const InputFiles& files,
                                    const CsvOptions& options, TargetKind kind,
                                    const CsvWords& words,
                                    std::vector<std::string>* warnings) {
  CsvTable table(files, options, kind);
  TRIBUTARY_RETURN_IF_ERROR(table.Read());
  TRIBUTARY_RETURN_IF_ERROR(table.CheckColumns(words));
  table.ReportUnknown(words, warnings);
  return table.Finish(words);
}

}  // namespace tributary
