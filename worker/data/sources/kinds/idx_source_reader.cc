// SPDX-License-Identifier: Apache-2.0
#include "common/status/status_macros.h"
#include "worker/data/readers/file_pairs.h"
#include "worker/data/readers/idx_reader.h"
#include "worker/data/readers/input_files.h"
#include "worker/data/sources/source_reader.h"
#include "worker/data/stream/stored_arrays.h"

namespace tributary {
namespace {

absl::StatusOr<RawData> ReadIdxSource(const v1::DataSource& of, TargetKind kind,
                                      LearnedFromTraining*) {
  const v1::IdxSource& source = of.idx();
  const FilePairFormat format{
      .count_rows = [](InputFile* images) -> absl::StatusOr<int64_t> {
        TRIBUTARY_ASSIGN_OR_RETURN(const Shape extents,
                                   ReadIdxHeader(images, 2, 4));
        return extents[0];
      },
      .read =
          [kind](InputFile* images, InputFile* labels, const RowRange& range) {
            return ReadIdx(images, labels, range, kind);
          }};
  return ReadFilePairs(InputFiles::Of(source.images()),
                       InputFiles::Of(source.labels()),
                       RowRange{source.first_row(), source.rows()}, format);
}

absl::StatusOr<StoredRows::Columns> StoreIdxSource(const v1::DataSource& of,
                                                   TargetKind kind,
                                                   LearnedFromTraining*) {
  const v1::IdxSource& source = of.idx();
  return StoreIdx(InputFiles::Of(source.images()),
                  InputFiles::Of(source.labels()),
                  RowRange{source.first_row(), source.rows()}, kind);
}

}  // namespace

void AddIdxSourceReader(SourceReaders* readers) {
  static const SourceReader reader = {.read = ReadIdxSource,
                                      .store = StoreIdxSource};
  readers->Add(v1::DataSource::kIdx, &reader);
}

}  // namespace tributary
