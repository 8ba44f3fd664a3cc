// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/train/data/readers/csv/csv_reader.h"
#include "worker/train/data/readers/input_files.h"
#include "worker/train/data/sources/source_reader.h"
#include "worker/train/data/stream/stored_csv.h"

namespace tributary {

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

namespace {

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

absl::StatusOr<RawData> ReadCsvSource(const v1::DataSource& of, TargetKind kind,
                                      LearnedFromTraining* learned) {
  const v1::CsvSource& source = of.csv();
  TRIBUTARY_ASSIGN_OR_RETURN(const CsvOptions options,
                             CsvOptionsOf(source, *learned));
  const InputFiles files = InputFiles::Of(source.path());
  return learned->training
             ? ReadTrainingCsv(files, options, kind, &learned->words)
             : ReadTestCsv(files, options, kind, learned->words,
                           &learned->warnings);
}

absl::StatusOr<StoredRows::Columns> StoreCsvSource(
    const v1::DataSource& of, TargetKind kind, LearnedFromTraining* learned) {
  const v1::CsvSource& source = of.csv();
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

}  // namespace

void AddCsvSourceReader(SourceReaders* readers) {
  static const SourceReader reader = {.read = ReadCsvSource,
                                      .store = StoreCsvSource};
  readers->Add(v1::DataSource::kCsv, &reader);
}

}  // namespace tributary
