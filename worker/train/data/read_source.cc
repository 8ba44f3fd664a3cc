// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/read_source.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/job/sources/source_kind.h"
#include "common/status/status_macros.h"

namespace tributary {

absl::StatusOr<RawData> ReadSource(const v1::DataSource& source,
                                   TargetKind kind,
                                   LearnedFromTraining* learned) {
  const SourceReader* const reader = ReaderOf(source);
  if (reader != nullptr) return reader->read(source, kind, learned);
  return absl::InvalidArgumentError(absl::StrCat(
      "wanted a data source (", absl::StrJoin(SourceKeys(), ", "), ") to ",
      learned->training ? "train" : "test", " on, got none"));
}

absl::StatusOr<std::shared_ptr<const StoredRows>> StoreSource(
    const v1::DataSource& source, TargetKind kind,
    LearnedFromTraining* learned) {
  const SourceReader* const reader = ReaderOf(source);
  if (reader == nullptr || reader->store == nullptr) {
    return absl::InvalidArgumentError(
        "data.stream is for rows in files; generated data are made in memory");
  }
  TRIBUTARY_ASSIGN_OR_RETURN(StoredRows::Columns columns,
                             reader->store(source, kind, learned));
  return StoredRows::Create(std::move(columns));
}

absl::StatusOr<std::vector<double>> MeasureFill(const v1::DataSource& source,
                                                const RawData& train,
                                                const RowParts& parts,
                                                const CsvWords& words) {
  if (!source.has_csv()) return std::vector<double>();
  return MeasureFill(MissingOf(source.csv()), train, parts, words.header,
                     words.roles);
}

NormalizeOptions NormalizeOptionsOf(const v1::DataSource& source) {
  NormalizeOptions options;
  const v1::NormalizeSpec* spec = NormalizeOf(source);
  if (spec == nullptr) return options;
  options.mean.assign(spec->mean().begin(), spec->mean().end());
  options.std.assign(spec->std().begin(), spec->std().end());
  options.standardize = spec->standardize();
  return options;
}

}  // namespace tributary
