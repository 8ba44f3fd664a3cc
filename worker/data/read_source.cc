// SPDX-License-Identifier: Apache-2.0
#include "worker/data/read_source.h"

#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/data/readers/file_pairs.h"
#include "worker/data/readers/idx_reader.h"
#include "worker/data/readers/input_files.h"
#include "worker/data/readers/npy_header.h"
#include "worker/data/readers/npy_reader.h"
#include "worker/data/readers/synthetic.h"
#include "worker/data/stream/stored_arrays.h"
#include "worker/data/stream/stored_csv.h"
#include "worker/data/stream/stored_text.h"

namespace tributary {
namespace {

absl::StatusOr<RawData> ReadIdxSource(const v1::IdxSource& source,
                                      TargetKind kind) {
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

CsvMissing MissingOf(const v1::CsvSource& source) {
  const v1::MissingSpec& spec = source.missing();
  CsvMissing missing;
  missing.texts = {spec.texts().begin(), spec.texts().end()};
  switch (spec.kind_case()) {
    case v1::MissingSpec::kMean:
      missing.kind = CsvMissing::Kind::kMean;
      break;
    case v1::MissingSpec::kMedian:
      missing.kind = CsvMissing::Kind::kMedian;
      break;
    case v1::MissingSpec::kConstant:
      missing.kind = CsvMissing::Kind::kConstant;
      missing.constant = spec.constant();
      break;
    case v1::MissingSpec::kSkip:
      missing.kind = CsvMissing::Kind::kSkip;
      break;
    case v1::MissingSpec::KIND_NOT_SET:
      break;
  }
  return missing;
}

absl::StatusOr<char> DelimiterOf(const v1::CsvSource& source) {
  const std::string& given = source.delimiter();
  if (given.size() != 1 || absl::StrContains("\"\r\n", given)) {
    return absl::InvalidArgumentError(absl::StrCat(
        source.path(0), ": wanted one character that is neither a quote nor a ",
        "line end as delimiter, got \"", absl::CHexEscape(given), "\""));
  }
  return given[0];
}

absl::StatusOr<CsvOptions> CsvOptionsOf(const v1::CsvSource& source,
                                        const LearnedFromTraining& learned) {
  CsvOptions options;
  options.offsets = learned.offsets;
  options.header = !source.has_header() || source.header();
  options.doubt_header = !source.has_header();
  TRIBUTARY_ASSIGN_OR_RETURN(options.delimiter, DelimiterOf(source));
  const v1::CsvColumns& columns = source.columns();
  options.columns.label = columns.label();
  options.columns.numeric = {columns.numeric().begin(),
                             columns.numeric().end()};
  options.columns.categorical = {columns.categorical().begin(),
                                 columns.categorical().end()};
  options.columns.ignore = {columns.ignore().begin(), columns.ignore().end()};
  options.range = {source.first_row(), source.rows()};
  options.missing = MissingOf(source);
  options.classes = {source.classes().begin(), source.classes().end()};
  return options;
}

absl::StatusOr<RawData> ReadCsvSource(const v1::CsvSource& source,
                                      TargetKind kind,
                                      LearnedFromTraining* learned) {
  TRIBUTARY_ASSIGN_OR_RETURN(const CsvOptions options,
                             CsvOptionsOf(source, *learned));
  const InputFiles files = InputFiles::Of(source.path());
  return learned->training
             ? ReadTrainingCsv(files, options, kind, &learned->words)
             : ReadTestCsv(files, options, kind, learned->words,
                           &learned->warnings);
}

absl::StatusOr<StoredRows::Columns> StoreCsv(const v1::CsvSource& source,
                                             TargetKind kind,
                                             LearnedFromTraining* learned) {
  TRIBUTARY_ASSIGN_OR_RETURN(const CsvOptions options,
                             CsvOptionsOf(source, *learned));
  const InputFiles files = InputFiles::Of(source.path());
  TRIBUTARY_ASSIGN_OR_RETURN(
      StoredRows::Columns columns,
      learned->training
          ? StoreTrainingCsv(files, options, kind, &learned->words)
          : StoreTestCsv(files, options, kind, learned->words,
                         &learned->warnings));
  columns.may_miss = options.missing.fills();
  return columns;
}

absl::StatusOr<RawData> ReadNpySource(const v1::NpySource& source,
                                      TargetKind kind,
                                      const std::vector<double>& offsets) {
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

// Subtracts the offsets from numbers that float32 holds exactly.
RawData WithOffsets(RawData data, const std::vector<double>& offsets) {
  if (offsets.empty()) return data;
  data.offsets = offsets;
  const std::vector<float> numbers = std::exchange(data.numbers, {});
  for (float number : numbers) data.AppendNumber(number);
  return data;
}

absl::StatusOr<RawData> ReadSyntheticSource(
    const v1::SyntheticSource& source, TargetKind kind,
    const std::vector<double>& offsets) {
  SyntheticOptions options;
  switch (source.kind()) {
    case v1::SyntheticSource::CTR:
      options.kind = SyntheticOptions::Kind::kCtr;
      break;
    case v1::SyntheticSource::LINEAR:
      options.kind = SyntheticOptions::Kind::kLinear;
      break;
    case v1::SyntheticSource::MLP_TEACHER:
      options.kind = SyntheticOptions::Kind::kMlpTeacher;
      break;
    case v1::SyntheticSource::MARKOV_TEXT:
      options.kind = SyntheticOptions::Kind::kMarkovText;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("synthetic: wanted the kind ctr, linear, mlp_teacher or "
                       "markov_text, got ",
                       v1::SyntheticSource::Kind_Name(source.kind())));
  }
  if (source.has_seed()) options.seed = source.seed();
  options.first_row = source.first_row();
  options.rows = source.rows();
  options.length = source.length();
  TRIBUTARY_ASSIGN_OR_RETURN(RawData data, MakeSynthetic(options, kind));
  return WithOffsets(std::move(data), offsets);
}

absl::StatusOr<TextOptions> TextOptionsOf(const v1::TextSource& source,
                                          TargetKind kind) {
  if (kind != TargetKind::kClass) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.path(0), ": the targets of a text are classes; ",
                     "wanted the loss cross_entropy"));
  }
  TextOptions options;
  options.bytes = source.tokens() == v1::TextSource::BYTES;
  options.length = source.length();
  options.stride = source.has_stride() ? source.stride() : source.length();
  options.begin = source.begin();
  options.end = source.has_end() ? source.end() : 1;
  options.range = {source.first_row(), source.rows()};
  if (options.length < 1 || options.stride < 1 || options.begin < 0 ||
      options.end > 1 || !(options.begin < options.end)) {
    return absl::InvalidArgumentError(absl::StrCat(
        source.path(0), ": wanted length and stride from 1 and a part within ",
        "0 and 1, got length ", options.length, ", stride ", options.stride,
        ", begin ", options.begin, ", end ", options.end));
  }
  return options;
}

absl::StatusOr<RawData> ReadTextSource(const v1::TextSource& source,
                                       TargetKind kind,
                                       LearnedFromTraining* learned) {
  TRIBUTARY_ASSIGN_OR_RETURN(const TextOptions options,
                             TextOptionsOf(source, kind));
  return ReadText(InputFiles::Of(source.path()), options, &learned->vocabulary);
}

absl::StatusOr<StoredRows::Columns> StoreColumns(const v1::DataSource& source,
                                                 TargetKind kind,
                                                 LearnedFromTraining* learned) {
  switch (source.kind_case()) {
    case v1::DataSource::kIdx:
      return StoreIdx(InputFiles::Of(source.idx().images()),
                      InputFiles::Of(source.idx().labels()),
                      RowRange{source.idx().first_row(), source.idx().rows()},
                      kind);
    case v1::DataSource::kCsv:
      return StoreCsv(source.csv(), kind, learned);
    case v1::DataSource::kNpy:
      return StoreNpy(InputFiles::Of(source.npy().features()),
                      InputFiles::Of(source.npy().labels()),
                      RowRange{source.npy().first_row(), source.npy().rows()},
                      kind, learned->offsets);
    case v1::DataSource::kText: {
      TRIBUTARY_ASSIGN_OR_RETURN(const TextOptions options,
                                 TextOptionsOf(source.text(), kind));
      return StoreText(InputFiles::Of(source.text().path()), options,
                       &learned->vocabulary);
    }
    default:
      break;
  }
  return absl::InvalidArgumentError(
      "data.stream is for rows in files; generated data are made in memory");
}

NormalizeOptions NormalizeOptionsOf(const v1::NormalizeSpec& spec) {
  NormalizeOptions options;
  options.mean.assign(spec.mean().begin(), spec.mean().end());
  options.std.assign(spec.std().begin(), spec.std().end());
  options.standardize = spec.standardize();
  return options;
}

}  // namespace

absl::StatusOr<RawData> ReadSource(const v1::DataSource& source,
                                   TargetKind kind,
                                   LearnedFromTraining* learned) {
  switch (source.kind_case()) {
    case v1::DataSource::kIdx:
      return ReadIdxSource(source.idx(), kind);
    case v1::DataSource::kCsv:
      return ReadCsvSource(source.csv(), kind, learned);
    case v1::DataSource::kNpy:
      return ReadNpySource(source.npy(), kind, learned->offsets);
    case v1::DataSource::kSynthetic:
      return ReadSyntheticSource(source.synthetic(), kind, learned->offsets);
    case v1::DataSource::kText:
      return ReadTextSource(source.text(), kind, learned);
    case v1::DataSource::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "wanted a data source (idx, csv, npy, synthetic or text) to ",
      learned->training ? "train" : "test", " on, got none"));
}

absl::StatusOr<std::shared_ptr<const StoredRows>> StoreSource(
    const v1::DataSource& source, TargetKind kind,
    LearnedFromTraining* learned) {
  TRIBUTARY_ASSIGN_OR_RETURN(StoredRows::Columns columns,
                             StoreColumns(source, kind, learned));
  return StoredRows::Create(std::move(columns));
}

absl::StatusOr<std::vector<double>> MeasureFill(const v1::DataSource& source,
                                                const RawData& train,
                                                const RowParts& parts,
                                                const CsvWords& words) {
  if (!source.has_csv()) return std::vector<double>();
  return MeasureFill(MissingOf(source.csv()), train, parts, words.header,
                     words.roles.numeric);
}

NormalizeOptions NormalizeOptionsOf(const v1::DataSource& source) {
  switch (source.kind_case()) {
    case v1::DataSource::kIdx:
      return NormalizeOptionsOf(source.idx().normalize());
    case v1::DataSource::kCsv:
      return NormalizeOptionsOf(source.csv().normalize());
    case v1::DataSource::kNpy:
      return NormalizeOptionsOf(source.npy().normalize());
    case v1::DataSource::kSynthetic:
      return NormalizeOptionsOf(source.synthetic().normalize());
    case v1::DataSource::kText:
      return {};
    case v1::DataSource::KIND_NOT_SET:
      break;
  }
  return {};
}

}  // namespace tributary
