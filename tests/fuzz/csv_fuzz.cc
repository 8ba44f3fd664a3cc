// SPDX-License-Identifier: Apache-2.0
// Delimited text: training and test readers accept and read the same text.
#include "worker/train/data/readers/csv/csv_reader.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/fuzz/data_checks.h"

namespace tributary::fuzz {
namespace {

// Names of columns, as in the job file: label;numeric;categorical;ignore, each
// a list with commas.
CsvColumnNames Columns(absl::string_view text) {
  const std::vector<std::string> fields = absl::StrSplit(text, ';');
  const auto list = [&fields](size_t i) -> std::vector<std::string> {
    if (i >= fields.size() || fields[i].empty()) return {};
    return absl::StrSplit(fields[i], ',');
  };
  return {.label = fields[0],
          .numeric = list(1),
          .categorical = list(2),
          .ignore = list(3)};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const uint8_t mode = input.Byte();
  const TargetKind kind = KindOf(mode & 3);
  CsvOptions options;
  options.header = mode & 4;
  options.doubt_header = mode & 64;
  if (mode & 128) options.classes = {"0", "NA", "yes"};
  options.delimiter = mode & 8 ? ';' : ',';
  constexpr CsvMissing::Kind kMissing[] = {
      CsvMissing::Kind::kError, CsvMissing::Kind::kMean,
      CsvMissing::Kind::kMedian, CsvMissing::Kind::kSkip};
  options.missing.kind = kMissing[mode >> 4 & 3];
  options.missing.texts = {"NA"};
  options.range = RangeOf(input.Byte());
  options.columns = Columns(input.Part());
  const std::string text(input.Rest());

  CsvWords words;
  absl::StatusOr<RawData> train = ReadTrainingCsv(
      InputFiles::OverBytes("train.csv", text), options, kind, &words);
  if (!train.ok()) return 0;
  const absl::StatusOr<std::vector<double>> fill = MeasureFill(
      options.missing, *train, PartsOf(*train), words.header, words.roles);
  if (!fill.ok()) return 0;
  FillMissing(*fill, &*train);
  CheckRawData(*train);

  std::vector<std::string> warnings;
  absl::StatusOr<RawData> test = ReadTestCsv(
      InputFiles::OverBytes("test.csv", text), options, kind, words, &warnings);
  if (test.ok()) FillMissing(*fill, &*test);
  Expect(test.ok() && warnings.empty(),
         "a training file is a test file without anything unknown");
  Expect(test->numbers == train->numbers && test->codes == train->codes &&
             test->targets.labels == train->targets.labels &&
             test->targets.values == train->targets.values,
         "the training file reads the same as a test file");
  return 0;
}

}  // namespace tributary::fuzz
