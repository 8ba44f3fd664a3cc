// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/files/residual_file.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/named_file.h"
#include "common/plan/plan_codec.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"

namespace tributary {

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(
    const std::string& folder, Part part, const std::string& key) {
  std::unique_ptr<CheckpointReader> reader(new CheckpointReader(folder, part));
  TRIBUTARY_ASSIGN_OR_RETURN(reader->manifest_, ReadManifest(folder, key));
  const v1::CheckpointManifest& manifest = reader->manifest_;
  reader->parameters_ = FromProto(manifest.parameters());
  reader->state_names_ = {manifest.state_names().begin(),
                          manifest.state_names().end()};
  TRIBUTARY_RETURN_IF_ERROR(reader->OpenFiles());
  TRIBUTARY_RETURN_IF_ERROR(reader->IndexPieces());
  return reader;
}

absl::Status CheckpointReader::OpenFiles() {
  for (int shard = 0; shard < manifest_.files_size(); ++shard) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        std::unique_ptr<ShardFile> opened,
        OpenNamed(folder_, manifest_, PagedFileKind::kShard, shard,
                  Compares(shard)));
    files_.push_back(std::move(opened));
    const int64_t skipped = files_.back()->header().skipped_steps;
    if (skipped != skipped_steps()) {
      return absl::DataLossError(
          absl::StrCat(folder_, ": ", manifest_.files(shard).name(),
                       " says that ", skipped, " steps changed nothing, ",
                       manifest_.files(0).name(), " says ", skipped_steps()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::IndexPieces() {
  pieces_.resize(parameters_.size());
  for (size_t file = 0; file < files_.size(); ++file) {
    for (const ShardFile::Range& range : files_[file]->ranges()) {
      pieces_[range.parameter].push_back({file, &range});
    }
  }
  for (size_t p = 0; p < pieces_.size(); ++p) {
    std::sort(pieces_[p].begin(), pieces_[p].end(),
              [](const Piece& a, const Piece& b) {
                return a.range->begin < b.range->begin;
              });
    const auto error = [&](int64_t element, absl::string_view where) {
      return absl::DataLossError(absl::StrCat(
          folder_, ": element ", element, " of parameter ",
          Quoted(parameters_[p].name), " stands ", where, " of its files"));
    };
    int64_t next = 0;
    for (const Piece& piece : pieces_[p]) {
      if (piece.range->begin > next) return error(next, "in none");
      if (piece.range->begin < next) {
        return error(piece.range->begin, "twice in one or two");
      }
      next = piece.range->end;
    }
    if (next < parameters_[p].size()) return error(next, "in none");
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::ReadRange(int tensor, int parameter,
                                         int64_t begin,
                                         absl::Span<float> values) const {
  std::vector<PageBuffer> buffers(files_.size());
  return Read(tensor, parameter, begin, values, &buffers);
}

absl::Status CheckpointReader::Read(int tensor, int parameter, int64_t begin,
                                    absl::Span<float> values,
                                    std::vector<PageBuffer>* buffers) const {
  const int64_t end = begin + static_cast<int64_t>(values.size());
  if (parameter < 0 || parameter >= static_cast<int>(parameters_.size()) ||
      begin < 0 || end > parameters_[parameter].size()) {
    return absl::OutOfRangeError(absl::StrCat(
        folder_, ": wants elements ", begin, " to ", end, " of parameter ",
        parameter, ", which the checkpoint does not hold"));
  }
  const std::vector<Piece>& pieces = pieces_[parameter];
  auto piece = std::partition_point(
      pieces.begin(), pieces.end(),
      [begin](const Piece& p) { return p.range->end <= begin; });
  for (; begin < end; ++piece) {
    const int64_t take = std::min(end, piece->range->end) - begin;
    TRIBUTARY_RETURN_IF_ERROR(
        files_[piece->file]->Read(*piece->range, tensor, begin,
                                  values.subspan(0, static_cast<size_t>(take)),
                                  &(*buffers)[piece->file]));
    values.remove_prefix(static_cast<size_t>(take));
    begin += take;
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::CompareChecksums() const {
  for (int file = 0; file < manifest_.files_size(); ++file) {
    if (!Compares(file)) continue;
    TRIBUTARY_RETURN_IF_ERROR(
        files_[file]->file().Compare(SumsOf(manifest_.files(file))));
  }
  return absl::OkStatus();
}

std::vector<FileReport> VerifyCheckpoint(const std::string& folder,
                                         const std::string& key) {
  std::vector<FileReport> reports;
  const absl::StatusOr<v1::CheckpointManifest> manifest =
      ReadManifest(folder, key);
  reports.push_back({ManifestPath(folder), 0, manifest.status()});
  if (!manifest.ok()) return reports;
  for (const v1::CheckpointFile& file : FilesOf(*manifest)) {
    const std::string path = absl::StrCat(folder, "/", file.name());
    reports.push_back({path, static_cast<int64_t>(file.bytes()),
                       VerifyPages(path, file.bytes(), SumsOf(file))});
  }
  // Intact files may still not fit together.
  if (IsWhole(reports)) {
    reports[0].status = CheckpointReader::Open(folder).status();
  }
  for (int rank = 0; IsWhole(reports) && rank < manifest->residuals_size();
       ++rank) {
    reports[0].status = ResidualFile::Open(folder, *manifest, rank).status();
  }
  return reports;
}

bool IsWhole(const std::vector<FileReport>& reports) {
  return std::all_of(reports.begin(), reports.end(),
                     [](const FileReport& r) { return r.status.ok(); });
}

}  // namespace tributary
