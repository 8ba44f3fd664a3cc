#include "worker/data/open_data.h"

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/data/describe_preprocessing.h"
#include "worker/data/readers/csv_reader.h"
#include "worker/data/readers/idx_reader.h"
#include "worker/data/readers/input_file.h"
#include "worker/data/readers/npy_reader.h"
#include "worker/data/readers/synthetic.h"
#include "worker/data/readers/text_reader.h"

namespace tributary {
namespace {

absl::StatusOr<RawData> ReadIdxSource(const v1::IdxSource& source,
                                      TargetKind kind) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> images,
                             InputFile::Open(source.images(0)));
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> labels,
                             InputFile::Open(source.labels(0)));
  return ReadIdx(images.get(), labels.get(),
                 RowRange{source.first_row(), source.rows()}, kind);
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

// State learned from the training source and used to read the test source.
struct Learned {
  bool training = true;
  CsvWords words;
  Vocabulary vocabulary;
  std::vector<std::string> warnings;
};

absl::StatusOr<RawData> ReadCsvSource(const v1::CsvSource& source,
                                      TargetKind kind, Learned* learned) {
  CsvOptions options;
  options.header = source.header();
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
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                             InputFile::Open(source.path(0)));
  return learned->training
             ? ReadTrainingCsv(file.get(), options, kind, &learned->words)
             : ReadTestCsv(file.get(), options, kind, learned->words,
                           &learned->warnings);
}

absl::StatusOr<RawData> ReadNpySource(const v1::NpySource& source,
                                      TargetKind kind) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> features,
                             InputFile::Open(source.features(0)));
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> labels,
                             InputFile::Open(source.labels(0)));
  return ReadNpy(features.get(), labels.get(),
                 RowRange{source.first_row(), source.rows()}, kind);
}

absl::StatusOr<RawData> ReadSyntheticSource(const v1::SyntheticSource& source,
                                            TargetKind kind) {
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
  return MakeSynthetic(options, kind);
}

absl::StatusOr<RawData> ReadTextSource(const v1::TextSource& source,
                                       TargetKind kind, Learned* learned) {
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
        source.path(0),
        ": wanted length and stride from 1 and a part within 0 ",
        "and 1, got length ", options.length, ", stride ", options.stride,
        ", begin ", options.begin, ", end ", options.end));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                             InputFile::Open(source.path(0)));
  return ReadText(file.get(), options, &learned->vocabulary);
}

absl::StatusOr<RawData> ReadSource(const v1::DataSource& source,
                                   TargetKind kind, Learned* learned) {
  switch (source.kind_case()) {
    case v1::DataSource::kIdx:
      return ReadIdxSource(source.idx(), kind);
    case v1::DataSource::kCsv:
      return ReadCsvSource(source.csv(), kind, learned);
    case v1::DataSource::kNpy:
      return ReadNpySource(source.npy(), kind);
    case v1::DataSource::kSynthetic:
      return ReadSyntheticSource(source.synthetic(), kind);
    case v1::DataSource::kText:
      return ReadTextSource(source.text(), kind, learned);
    case v1::DataSource::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "wanted a data source (idx, csv, npy, synthetic or text) to ",
      learned->training ? "train" : "test", " on, got none"));
}

NormalizeOptions NormalizeOptionsOf(const v1::NormalizeSpec& spec) {
  NormalizeOptions options;
  options.mean.assign(spec.mean().begin(), spec.mean().end());
  options.std.assign(spec.std().begin(), spec.std().end());
  options.standardize = spec.standardize();
  return options;
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

// The values that replace those that `source` lacks, measured on `train`.
absl::StatusOr<std::vector<double>> FillOf(const v1::DataSource& source,
                                           const RawData& train,
                                           const CsvWords& words) {
  if (!source.has_csv()) return std::vector<double>();
  return MeasureFill(MissingOf(source.csv()), train, words.header,
                     words.roles.numeric);
}

// OK when a model that takes one of the two data sets also takes the other.
absl::Status CheckAlike(const RawData& train, const RawData& test) {
  if (test.feature_shape != train.feature_shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        test.name, ": samples are ", ShapeText(test.feature_shape),
        ", but the training data's are ", ShapeText(train.feature_shape)));
  }
  if (test.targets.width != train.targets.width) {
    return absl::InvalidArgumentError(absl::StrCat(
        test.name, ": samples have ", test.targets.width,
        " targets, but the training data's have ", train.targets.width));
  }
  return absl::OkStatus();
}

}  // namespace

TargetKind TargetKindOf(const v1::LossSpec& loss) {
  switch (loss.kind_case()) {
    case v1::LossSpec::kBceWithLogits:
      return TargetKind::kBinary;
    case v1::LossSpec::kMse:
      return TargetKind::kReal;
    default:
      return TargetKind::kClass;
  }
}

absl::StatusOr<TrainTest> OpenData(const v1::DataSpec& spec, TargetKind kind,
                                   std::string* field) {
  std::string unused;
  if (field == nullptr) field = &unused;
  *field = "data.train";
  Learned learned;
  TRIBUTARY_ASSIGN_OR_RETURN(RawData train,
                             ReadSource(spec.train(), kind, &learned));
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<double> fill,
                             FillOf(spec.train(), train, learned.words));
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<double> test_fill,
                             FillOf(spec.test(), train, learned.words));
  FillMissing(fill, &train);
  const NormalizeOptions train_options = NormalizeOptionsOf(spec.train());
  TRIBUTARY_ASSIGN_OR_RETURN(const Normalization normalization,
                             ResolveNormalization(train_options, train));
  TrainTest data;
  data.preprocessing = DescribePreprocessing(
      spec.train(), train, normalization,
      {.words = &learned.words, .fill = fill}, learned.vocabulary);
  if (spec.has_test()) {
    learned.training = false;
    *field = "data.test";
    TRIBUTARY_ASSIGN_OR_RETURN(RawData test,
                               ReadSource(spec.test(), kind, &learned));
    TRIBUTARY_RETURN_IF_ERROR(CheckAlike(train, test));
    FillMissing(test_fill, &test);
    Normalization test_normalization = normalization;
    if (const NormalizeOptions test_options = NormalizeOptionsOf(spec.test());
        test_options != train_options) {
      // `standardize` of the test source is measured on the training data too.
      TRIBUTARY_ASSIGN_OR_RETURN(test_normalization,
                                 ResolveNormalization(test_options, train));
    }
    data.test = std::make_unique<Dataset>(std::move(test), test_normalization);
  }
  data.train = std::make_unique<Dataset>(std::move(train), normalization);
  data.warnings = std::move(learned.warnings);
  return data;
}

}  // namespace tributary
