#include "worker/data/open_data.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/data/describe_preprocessing.h"
#include "worker/data/read_source.h"

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

  // Some row at least, which shows how all rows are.
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

  // Takes the rows.
  absl::StatusOr<std::unique_ptr<Dataset>> MakeSet(
      const Normalization& normalization) {
    if (stored != nullptr) return Dataset::OnDisk(stored, normalization);
    return std::make_unique<Dataset>(std::move(raw), normalization);
  }
};

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
  LearnedFromTraining learned;
  const bool on_disk = spec.has_stream();
  TRIBUTARY_ASSIGN_OR_RETURN(
      SourceRows train,
      SourceRows::Open(spec.train(), on_disk, kind, &learned));
  const auto measure_fill = [&](const v1::DataSource& source) {
    return MeasureFill(source, train.sample(), train.parts(), learned.words);
  };
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<double> fill,
                             measure_fill(spec.train()));
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<double> test_fill,
                             measure_fill(spec.test()));
  TRIBUTARY_RETURN_IF_ERROR(train.Fill(fill));
  const NormalizeOptions train_options = NormalizeOptionsOf(spec.train());
  TRIBUTARY_ASSIGN_OR_RETURN(const Normalization normalization,
                             train.Resolve(train_options));
  TrainTest data;
  data.preprocessing = DescribePreprocessing(
      spec.train(), train.sample(), normalization,
      {.words = &learned.words, .fill = fill}, learned.vocabulary);
  if (spec.has_test()) {
    learned.training = false;
    *field = "data.test";
    TRIBUTARY_ASSIGN_OR_RETURN(
        SourceRows test,
        SourceRows::Open(spec.test(), on_disk, kind, &learned));
    TRIBUTARY_RETURN_IF_ERROR(CheckAlike(train.sample(), test.sample()));
    TRIBUTARY_RETURN_IF_ERROR(test.Fill(test_fill));
    Normalization test_normalization = normalization;
    if (const NormalizeOptions test_options = NormalizeOptionsOf(spec.test());
        test_options != train_options) {
      // `standardize` of the test source is measured on the training data too.
      TRIBUTARY_ASSIGN_OR_RETURN(test_normalization,
                                 train.Resolve(test_options));
    }
    TRIBUTARY_ASSIGN_OR_RETURN(data.test, test.MakeSet(test_normalization));
    *field = "data.train";
  }
  TRIBUTARY_ASSIGN_OR_RETURN(data.train, train.MakeSet(normalization));
  data.warnings = std::move(learned.warnings);
  return data;
}

}  // namespace tributary
