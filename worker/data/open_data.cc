#include "worker/data/open_data.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "worker/data/idx_reader.h"
#include "worker/data/input_file.h"

namespace tributary {
namespace {

absl::StatusOr<RawData> ReadIdxSource(const v1::IdxSource& source,
                                      TargetKind kind) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> images,
                             InputFile::Open(source.images()));
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> labels,
                             InputFile::Open(source.labels()));
  return ReadIdx(images.get(), labels.get(),
                 RowRange{source.first_row(), source.rows()}, kind);
}

absl::StatusOr<RawData> ReadSource(const v1::DataSource& source,
                                   TargetKind kind) {
  switch (source.kind_case()) {
    case v1::DataSource::kIdx:
      return ReadIdxSource(source.idx(), kind);
    case v1::DataSource::kCsv:
    case v1::DataSource::kNpy:
    case v1::DataSource::kSynthetic:
      return absl::UnimplementedError("no reader for this source yet");
    case v1::DataSource::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "wanted a data source (idx, csv, npy or synthetic), got none");
}

// Null when the source has no normalize.
const v1::NormalizeSpec* FindNormalize(const v1::DataSource& source) {
  switch (source.kind_case()) {
    case v1::DataSource::kIdx:
      return source.idx().has_normalize() ? &source.idx().normalize() : nullptr;
    case v1::DataSource::kCsv:
      return source.csv().has_normalize() ? &source.csv().normalize() : nullptr;
    case v1::DataSource::kNpy:
      return source.npy().has_normalize() ? &source.npy().normalize() : nullptr;
    case v1::DataSource::kSynthetic:
      return source.synthetic().has_normalize()
                 ? &source.synthetic().normalize()
                 : nullptr;
    case v1::DataSource::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

NormalizeOptions NormalizeOptionsOf(const v1::NormalizeSpec* spec) {
  NormalizeOptions options;
  if (spec == nullptr) return options;
  options.mean.assign(spec->mean().begin(), spec->mean().end());
  options.std.assign(spec->std().begin(), spec->std().end());
  options.standardize = spec->standardize();
  return options;
}

}  // namespace

absl::StatusOr<TrainTest> OpenData(const v1::DataSpec& spec, TargetKind kind) {
  TRIBUTARY_ASSIGN_OR_RETURN(RawData train, ReadSource(spec.train(), kind));
  const v1::NormalizeSpec* train_normalize = FindNormalize(spec.train());
  TRIBUTARY_ASSIGN_OR_RETURN(
      const Normalization normalization,
      ResolveNormalization(NormalizeOptionsOf(train_normalize), train));
  TrainTest data;
  if (spec.has_test()) {
    TRIBUTARY_ASSIGN_OR_RETURN(RawData test, ReadSource(spec.test(), kind));
    if (test.feature_shape != train.feature_shape) {
      return absl::InvalidArgumentError(absl::StrCat(
          test.name, ": samples are ", ShapeText(test.feature_shape),
          ", but the training data's are ", ShapeText(train.feature_shape)));
    }
    Normalization test_normalization = normalization;
    const v1::NormalizeSpec* test_normalize = FindNormalize(spec.test());
    if (test_normalize != nullptr) {
      // Measured, if asked for, on the training data too.
      TRIBUTARY_ASSIGN_OR_RETURN(
          test_normalization,
          ResolveNormalization(NormalizeOptionsOf(test_normalize), train));
    }
    data.test = std::make_unique<Dataset>(std::move(test), test_normalization);
  }
  data.train = std::make_unique<Dataset>(std::move(train), normalization);
  return data;
}

}  // namespace tributary
