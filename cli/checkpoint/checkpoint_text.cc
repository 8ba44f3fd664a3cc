// SPDX-License-Identifier: Apache-2.0
#include "cli/checkpoint/checkpoint_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/host/format_bytes.h"
#include "common/status/quoted.h"

namespace tributary {
namespace {

std::string Time(int64_t micros) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixMicros(micros),
                          absl::UTCTimeZone());
}

std::string Line(const CheckpointInfo& info) {
  if (!info.complete()) {
    return absl::StrFormat("%8d  incomplete: %s\n", info.step,
                           info.status.message());
  }
  const v1::CheckpointManifest& manifest = info.manifest;
  return absl::StrFormat(
      "%8d  %5d  %7d  %10s  %-20s  %s\n", info.step, manifest.epoch(),
      manifest.files_size(), FormatBytes(static_cast<uint64_t>(info.bytes)),
      Time(manifest.created_micros()), Quoted(manifest.name()));
}

}  // namespace

std::string ListText(const std::vector<CheckpointInfo>& checkpoints) {
  std::string text =
      "    step  epoch  servers        size  "
      "written               job\n";
  for (const CheckpointInfo& info : checkpoints) {
    absl::StrAppend(&text, Line(info));
  }
  return text;
}

std::string VerifyText(const std::string& folder,
                       const std::vector<FileReport>& reports) {
  uint64_t bytes = 0;
  std::string damages;
  for (const FileReport& report : reports) {
    bytes += static_cast<uint64_t>(report.bytes);
    if (!report.status.ok()) {
      absl::StrAppend(&damages, "\n  ", report.status.message());
    }
  }
  if (!damages.empty()) return absl::StrCat(folder, ": damaged", damages, "\n");
  return absl::StrCat(folder, ": intact, ", reports.size(), " files, ",
                      FormatBytes(bytes), "\n");
}

}  // namespace tributary
