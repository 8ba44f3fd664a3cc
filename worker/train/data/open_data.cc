// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/open_data.h"

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/job/files/repeated_files.h"
#include "common/job/sources/source_kind.h"
#include "common/status/about_field.h"
#include "common/status/place.h"
#include "common/status/status_macros.h"
#include "worker/train/data/describe_preprocessing.h"
#include "worker/train/data/read_source.h"
#include "worker/train/data/readers/csv/similar_words.h"
#include "worker/train/data/rounding_notes.h"
#include "worker/train/data/validation_rows.h"

namespace tributary {
namespace {

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

// A source's rows, in memory or on disk.
struct SourceRows {
  RawData raw;
  std::shared_ptr<const StoredRows> stored;  // null: in memory

  static absl::StatusOr<SourceRows> Open(const v1::DataSource& source,
                                         bool on_disk, TargetKind kind,
                                         LearnedFromTraining* learned) {
    SourceRows rows;
    if (on_disk) {
      TRIBUTARY_ASSIGN_OR_RETURN(rows.stored,
                                 StoreSource(source, kind, learned));
    } else {
      TRIBUTARY_ASSIGN_OR_RETURN(rows.raw, ReadSource(source, kind, learned));
    }
    return rows;
  }

  // At least one row, whose layout all rows have.
  const RawData& sample() const { return stored ? stored->first_row() : raw; }

  RowParts parts() const {
    if (stored == nullptr) return PartsOf(raw);
    return [rows = stored](const auto& take) {
      return rows->ForEachPart(
          [&take](const RawData& part, int64_t) { return take(part); });
    };
  }

  absl::StatusOr<Normalization> Resolve(const NormalizeOptions& options) const {
    return ResolveNormalization(options, sample(),
                                stored ? stored->rows() : raw.rows, parts());
  }

  absl::Status Fill(const std::vector<double>& fill) {
    if (stored == nullptr) {
      FillMissing(fill, &raw);
    } else if (!fill.empty()) {
      TRIBUTARY_ASSIGN_OR_RETURN(stored, stored->Fill(fill));
    }
    return absl::OkStatus();
  }

  // Makes a data set of the rows. Rows in memory are moved into it.
  absl::StatusOr<std::unique_ptr<Dataset>> MakeSet(
      const Normalization& normalization) {
    if (stored != nullptr) return Dataset::OnDisk(stored, normalization);
    return std::make_unique<Dataset>(std::move(raw), normalization);
  }
};

// The rules that make features of a source's values, measured on the training
// data.
struct FeatureRules {
  std::vector<double> fill;
  Normalization normalization;
};

// Opens the sets of a job one after the other.
class SetsOpener {
 public:
  SetsOpener(const v1::DataSpec& spec, TargetKind kind)
      : spec_(spec), kind_(kind) {}

  absl::StatusOr<TrainTest> Open();
  // The field of the job that was read last, as "data.train.csv".
  const std::string& field() const { return field_; }

 private:
  absl::StatusOr<SourceRows> OpenRows(const char* field,
                                      const v1::DataSource& source,
                                      const FeatureRules& rules);
  void Enter(const char* field, const v1::DataSource& source) {
    field_ = JoinPath(field, SourceKey(source));
  }
  // Opens the training source and measures it.
  absl::Status OpenTraining();
  // Moves the rows of data.validation.fraction out of the training rows.
  absl::StatusOr<SourceRows> TakeFraction();
  absl::Status Measure();
  absl::StatusOr<std::unique_ptr<Dataset>> MakeBeside(
      SourceRows rows, const FeatureRules& rules);

  const v1::DataSpec& spec_;
  const TargetKind kind_;
  std::string field_;
  LearnedFromTraining learned_;
  SourceRows train_;
  SourceRows fraction_;  // if data.validation takes one
  FeatureRules train_rules_, validation_rules_, test_rules_;
};

absl::StatusOr<SourceRows> SetsOpener::OpenRows(const char* field,
                                                const v1::DataSource& source,
                                                const FeatureRules& rules) {
  Enter(field, source);
  learned_.offsets = rules.normalization.offsets;
  return SourceRows::Open(source, spec_.has_stream(), kind_, &learned_);
}

absl::StatusOr<SourceRows> SetsOpener::TakeFraction() {
  field_ = "data.validation.fraction";
  if (spec_.has_stream()) {
    return absl::InvalidArgumentError(
        "a fraction of the training rows wants them in memory, and data.stream "
        "leaves them on disk");
  }
  std::optional<uint64_t> seed;
  if (!spec_.shuffle().none()) seed = spec_.shuffle().seed();
  SourceRows rows;
  TRIBUTARY_ASSIGN_OR_RETURN(
      rows.raw,
      TakeValidationRows(spec_.validation().fraction(), seed, &train_.raw));
  return rows;
}

// Measures the training data, which have no missing value afterwards. If
// another source has rules of its own, measures those on them, too.
absl::Status SetsOpener::Measure() {
  const std::tuple<const char*, const v1::DataSource*, FeatureRules*> sets[] = {
      {"data.train", &spec_.train(), &train_rules_},
      {"data.validation.source", &spec_.validation().source(),
       &validation_rules_},
      {"data.test", &spec_.test(), &test_rules_}};
  for (const auto& [field, source, rules] : sets) {
    Enter(field, *source);
    TRIBUTARY_ASSIGN_OR_RETURN(
        rules->fill,
        MeasureFill(*source, train_.sample(), train_.parts(), learned_.words));
  }
  TRIBUTARY_RETURN_IF_ERROR(train_.Fill(train_rules_.fill));
  const NormalizeOptions options = NormalizeOptionsOf(spec_.train());
  for (const auto& [field, source, rules] : sets) {
    Enter(field, *source);
    const NormalizeOptions own = NormalizeOptionsOf(*source);
    if (rules != &train_rules_ && own == options) {
      rules->normalization = train_rules_.normalization;
      continue;
    }
    TRIBUTARY_ASSIGN_OR_RETURN(rules->normalization, train_.Resolve(own));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Dataset>> SetsOpener::MakeBeside(
    SourceRows rows, const FeatureRules& rules) {
  TRIBUTARY_RETURN_IF_ERROR(CheckAlike(train_.sample(), rows.sample()));
  TRIBUTARY_RETURN_IF_ERROR(rows.Fill(rules.fill));
  return rows.MakeSet(rules.normalization);
}

absl::Status SetsOpener::OpenTraining() {
  train_ = {};
  fraction_ = {};
  learned_ = {};
  TRIBUTARY_ASSIGN_OR_RETURN(
      train_, OpenRows("data.train", spec_.train(), train_rules_));
  learned_.training = false;
  if (spec_.validation().has_fraction()) {
    TRIBUTARY_ASSIGN_OR_RETURN(fraction_, TakeFraction());
  }
  return Measure();
}

absl::StatusOr<TrainTest> SetsOpener::Open() {
  TrainTest data;
  TRIBUTARY_RETURN_IF_ERROR(OpenTraining());
  // An offset that is measured on float32 values is accurate to 2^-24 of its
  // size, so at most three measurements give all digits of a float64.
  constexpr int kMostReads = 5;
  for (int reads = 1;
       reads < kMostReads &&
       train_rules_.normalization.offsets != train_.sample().offsets;
       ++reads) {
    TRIBUTARY_RETURN_IF_ERROR(OpenTraining());
  }
  data.preprocessing = DescribePreprocessing(
      spec_.train(), train_.sample(), train_rules_.normalization,
      {.words = &learned_.words, .fill = train_rules_.fill},
      learned_.vocabulary);
  if (spec_.validation().has_fraction()) {
    TRIBUTARY_ASSIGN_OR_RETURN(data.validation,
                               MakeBeside(std::move(fraction_), train_rules_));
  } else if (spec_.has_validation()) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        SourceRows rows,
        OpenRows("data.validation.source", spec_.validation().source(),
                 validation_rules_));
    TRIBUTARY_ASSIGN_OR_RETURN(data.validation,
                               MakeBeside(std::move(rows), validation_rules_));
  }
  if (spec_.has_test()) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        SourceRows rows, OpenRows("data.test", spec_.test(), test_rules_));
    TRIBUTARY_ASSIGN_OR_RETURN(data.test,
                               MakeBeside(std::move(rows), test_rules_));
  }
  Enter("data.train", spec_.train());
  TRIBUTARY_ASSIGN_OR_RETURN(data.train,
                             train_.MakeSet(train_rules_.normalization));
  data.warnings = std::move(learned_.warnings);
  for (const std::vector<std::string>& notes :
       {RepeatedFileNotes(spec_),
        SimilarWordNotes(data.train->name(), learned_.words,
                         spec_.train().csv().classes_size() > 0),
        RoundingNotes(*data.train, train_rules_.normalization,
                      learned_.words)}) {
    data.warnings.insert(data.warnings.end(), notes.begin(), notes.end());
  }
  return data;
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

absl::StatusOr<TrainTest> OpenData(const v1::DataSpec& spec, TargetKind kind) {
  SetsOpener opener(spec, kind);
  absl::StatusOr<TrainTest> data = opener.Open();
  return AboutField(std::move(data), opener.field());
}

}  // namespace tributary
