// SPDX-License-Identifier: Apache-2.0
#include "common/status/status_macros.h"
#include "worker/train/data/readers/input_files.h"
#include "worker/train/data/sources/source_reader.h"
#include "worker/train/data/stream/stored_arrays.h"

namespace tributary {
namespace {

ArrayFiles FilesOf(const v1::NpySource& source, TargetKind kind) {
  return {.samples = InputFiles::Of(source.features()),
          .labels = InputFiles::Of(source.labels()),
          .range = {source.first_row(), source.rows()},
          .kind = kind};
}

absl::StatusOr<RawData> ReadNpySource(const v1::DataSource& source,
                                      TargetKind kind,
                                      LearnedFromTraining* learned) {
  TRIBUTARY_ASSIGN_OR_RETURN(StoredRows::Columns columns,
                             OpenNpy(FilesOf(source.npy(), kind),
                                     learned->offsets, ReadOrder::kSequential));
  return StoredRows::ReadAll(std::move(columns));
}

absl::StatusOr<StoredRows::Columns> StoreNpySource(
    const v1::DataSource& source, TargetKind kind,
    LearnedFromTraining* learned) {
  return OpenNpy(FilesOf(source.npy(), kind), learned->offsets,
                 ReadOrder::kRandom);
}

}  // namespace

void AddNpySourceReader(SourceReaders* readers) {
  static const SourceReader reader = {.read = ReadNpySource,
                                      .store = StoreNpySource};
  readers->Add(v1::DataSource::kNpy, &reader);
}

}  // namespace tributary
