// SPDX-License-Identifier: Apache-2.0
#include "common/status/status_macros.h"
#include "worker/data/readers/file_pairs.h"
#include "worker/data/readers/input_files.h"
#include "worker/data/readers/npy_header.h"
#include "worker/data/readers/npy_reader.h"
#include "worker/data/sources/source_reader.h"
#include "worker/data/stream/stored_arrays.h"

namespace tributary {
namespace {

absl::StatusOr<RawData> ReadNpySource(const v1::DataSource& of, TargetKind kind,
                                      LearnedFromTraining* learned) {
  const v1::NpySource& source = of.npy();
  const std::vector<double>& offsets = learned->offsets;
  const FilePairFormat format{
      .count_rows = [](InputFile* features) -> absl::StatusOr<int64_t> {
        TRIBUTARY_ASSIGN_OR_RETURN(const NpyHeader header,
                                   ReadNpyHeader(features));
        return header.shape[0];
      },
      .read =
          [kind, &offsets](InputFile* features, InputFile* labels,
                           const RowRange& range) {
            return ReadNpy(features, labels, range, kind, offsets);
          }};
  return ReadFilePairs(InputFiles::Of(source.features()),
                       InputFiles::Of(source.labels()),
                       RowRange{source.first_row(), source.rows()}, format);
}

absl::StatusOr<StoredRows::Columns> StoreNpySource(
    const v1::DataSource& of, TargetKind kind, LearnedFromTraining* learned) {
  const v1::NpySource& source = of.npy();
  return StoreNpy(
      InputFiles::Of(source.features()), InputFiles::Of(source.labels()),
      RowRange{source.first_row(), source.rows()}, kind, learned->offsets);
}

}  // namespace

void AddNpySourceReader(SourceReaders* readers) {
  static const SourceReader reader = {.read = ReadNpySource,
                                      .store = StoreNpySource};
  readers->Add(v1::DataSource::kNpy, &reader);
}

}  // namespace tributary
