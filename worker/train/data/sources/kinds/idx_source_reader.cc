// SPDX-License-Identifier: Apache-2.0
#include "common/status/status_macros.h"
#include "worker/train/data/readers/input_files.h"
#include "worker/train/data/sources/source_reader.h"
#include "worker/train/data/stream/stored_arrays.h"

namespace tributary {
namespace {

ArrayFiles FilesOf(const v1::IdxSource& source, TargetKind kind) {
  return {.samples = InputFiles::Of(source.images()),
          .labels = InputFiles::Of(source.labels()),
          .range = {source.first_row(), source.rows()},
          .kind = kind};
}

absl::StatusOr<RawData> ReadIdxSource(const v1::DataSource& source,
                                      TargetKind kind, LearnedFromTraining*) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      StoredRows::Columns columns,
      OpenIdx(FilesOf(source.idx(), kind), ReadOrder::kSequential));
  return StoredRows::ReadAll(std::move(columns));
}

absl::StatusOr<StoredRows::Columns> StoreIdxSource(const v1::DataSource& source,
                                                   TargetKind kind,
                                                   LearnedFromTraining*) {
  return OpenIdx(FilesOf(source.idx(), kind), ReadOrder::kRandom);
}

}  // namespace

void AddIdxSourceReader(SourceReaders* readers) {
  static const SourceReader reader = {.read = ReadIdxSource,
                                      .store = StoreIdxSource};
  readers->Add(v1::DataSource::kIdx, &reader);
}

}  // namespace tributary
