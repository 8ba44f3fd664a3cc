// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/job/sources/source_kind.h"
#include "common/job/validate/validate.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

absl::Status ValidateNormalize(const Places& places, const std::string& path,
                               const v1::NormalizeSpec& normalize) {
  const int means = normalize.mean_size();
  const int stds = normalize.std_size();
  if (normalize.standardize() && means + stds > 0) {
    return places.Error(path, path,
                        " takes either standardize or mean and std");
  }
  if (means > 1 && stds > 1 && means != stds) {
    return places.Error(path, path, " has ", means, " values in mean and ",
                        stds, " in std");
  }
  return absl::OkStatus();
}

absl::Status ValidateSource(const Places& places, const std::string& path,
                            const v1::DataSource& source) {
  const SourceKind* kind = KindOf(source);
  if (kind == nullptr) return absl::OkStatus();
  const std::string kind_path = absl::StrCat(path, ".", SourceKey(source));
  TRIBUTARY_RETURN_IF_ERROR(kind->Validate(places, kind_path, source));
  const v1::NormalizeSpec* normalize = NormalizeOf(source);
  if (normalize == nullptr) return absl::OkStatus();
  return ValidateNormalize(places, kind_path + ".normalize", *normalize);
}

// Checks the source at `path`, which is used beside the training set.
absl::Status ValidateBeside(const Places& places, const std::string& path,
                            const v1::DataSource& train,
                            const v1::DataSource& source) {
  if (source.kind_case() != train.kind_case()) {
    return places.Error(path, path, " wants the kind of data.train, ",
                        SourceKey(train), ", got ", SourceKey(source));
  }
  TRIBUTARY_RETURN_IF_ERROR(ValidateSource(places, path, source));
  if (train.has_synthetic() &&
      train.synthetic().kind() != source.synthetic().kind()) {
    const std::string kind = path + ".synthetic.kind";
    return places.Error(kind, kind, " differs from data.train's");
  }
  if (source.text().tokens() != train.text().tokens()) {
    const std::string tokens = path + ".text.tokens";
    return places.Error(tokens, tokens, " differs from data.train's");
  }
  if (!absl::c_equal(source.csv().classes(), train.csv().classes())) {
    const std::string classes = path + ".csv.classes";
    return places.Error(classes, classes,
                        " wants the classes of data.train in their order: name "
                        "them in data.train.csv.classes, and leave out ",
                        classes);
  }
  return absl::OkStatus();
}

// Checks the loss for data with a fixed kind of labels: the numbers of a
// regression or the tokens of a text. Clicks are 0 or 1, which every loss
// accepts.
absl::Status ValidateLossOfData(const Places& places, const v1::JobSpec& job) {
  const v1::LossSpec& loss = job.training().loss();
  if (job.data().train().has_text() && !loss.has_cross_entropy()) {
    return places.Error("training.loss",
                        "training.loss wants cross_entropy for the tokens of "
                        "data.train");
  }
  if (loss.has_mse() && !job.data().train().csv().classes().empty()) {
    return places.Error("data.train.csv.classes",
                        "data.train.csv.classes is for losses of classes, and "
                        "mse wants numbers");
  }
  switch (job.data().train().synthetic().kind()) {
    case v1::SyntheticSource::LINEAR:
    case v1::SyntheticSource::MLP_TEACHER:
      if (loss.has_mse()) return absl::OkStatus();
      return places.Error("training.loss",
                          "training.loss wants mse for the numbers that "
                          "data.train makes");
    case v1::SyntheticSource::MARKOV_TEXT:
      if (loss.has_cross_entropy()) return absl::OkStatus();
      return places.Error("training.loss",
                          "training.loss wants cross_entropy for the tokens "
                          "that data.train makes");
    default:
      return absl::OkStatus();
  }
}

}  // namespace

absl::Status ValidateData(const Places& places, const v1::JobSpec& job) {
  const v1::DataSpec& data = job.data();
  TRIBUTARY_RETURN_IF_ERROR(ValidateSource(places, "data.train", data.train()));
  if (data.has_test()) {
    TRIBUTARY_RETURN_IF_ERROR(
        ValidateBeside(places, "data.test", data.train(), data.test()));
  }
  if (data.validation().has_source()) {
    TRIBUTARY_RETURN_IF_ERROR(ValidateBeside(places, "data.validation.source",
                                             data.train(),
                                             data.validation().source()));
  }
  if (data.has_stream() && IsGenerated(data.train())) {
    return places.Error("data.stream",
                        "data.stream is for rows in files; generated data are "
                        "made in memory");
  }
  if (data.has_stream() && data.validation().has_fraction()) {
    return places.Error("data.validation", "data.validation",
                        " takes a fraction of rows in memory; with data.stream "
                        "name rows of their own as data.validation.source");
  }
  if (data.shuffle().has_none() && !data.shuffle().none()) {
    return places.Error("data.shuffle.none",
                        "data.shuffle.none can only be true; to shuffle, write "
                        "shuffle: {seed: 1}");
  }
  return ValidateLossOfData(places, job);
}

}  // namespace tributary
