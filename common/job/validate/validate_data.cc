// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/job/job_files.h"
#include "common/job/validate/validate.h"
#include "common/status/quoted.h"
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

// Of a switch that can only be on, as in `missing: mean`.
absl::Status ValidateMissing(const Places& places, const std::string& path,
                             const v1::MissingSpec& missing) {
  const std::pair<const char*, bool> kinds[] = {
      {"mean", !missing.has_mean() || missing.mean()},
      {"median", !missing.has_median() || missing.median()},
      {"skip", !missing.has_skip() || missing.skip()}};
  for (const auto& [kind, valid] : kinds) {
    if (valid) continue;
    const std::string field = absl::StrCat(path, ".", kind);
    return places.Error(field, field,
                        " can only be true; to make a missing value an error, "
                        "leave out ",
                        path);
  }
  return absl::OkStatus();
}

// Parses a column number from 0; false when the text is not a number.
bool ParseColumn(absl::string_view text, int64_t* column) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *column);
  return error == std::errc() && end == text.data() + text.size() &&
         *column >= 0;
}

// True for "7" or "0-63".
bool IsColumnNumbers(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(text, absl::MaxSplits('-', 1));
  int64_t first, last;
  if (!ParseColumn(ends.first, &first)) return false;
  if (ends.first.size() == text.size()) return true;
  return ParseColumn(ends.second, &last) && first <= last;
}

class ColumnCheck {
 public:
  ColumnCheck(const Places& places, bool header)
      : places_(places), header_(header) {}

  absl::Status Take(const std::string& path, const std::string& column) {
    // In a header, "" is the column without a name.
    if (!header_ && !IsColumnNumbers(column)) {
      return places_.Error(path, path,
                           " wants a number from 0 or a range such as 0-63 ",
                           "in a file without header, got ", Quoted(column));
    }
    if (!seen_.insert(column).second) {
      return places_.Error(path, path, " names column ", Quoted(column),
                           ", which is named before");
    }
    return absl::OkStatus();
  }

  template <typename Columns>
  absl::Status TakeAll(const std::string& path, const Columns& columns) {
    for (int i = 0; i < columns.size(); ++i) {
      TRIBUTARY_RETURN_IF_ERROR(
          Take(absl::StrCat(path, ".", i), columns.Get(i)));
    }
    return absl::OkStatus();
  }

 private:
  const Places& places_;
  const bool header_;
  std::set<std::string> seen_;
};

absl::Status ValidateClasses(const Places& places, const std::string& path,
                             const v1::CsvSource& csv) {
  std::set<std::string> seen;
  for (int i = 0; i < csv.classes_size(); ++i) {
    const std::string item = absl::StrCat(path, ".", i);
    if (csv.classes(i).empty()) return places.Error(item, item, " is empty");
    if (!seen.insert(csv.classes(i)).second) {
      return places.Error(item, item, " names class ", Quoted(csv.classes(i)),
                          ", which is named before");
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateCsv(const Places& places, const std::string& path,
                         const v1::CsvSource& csv) {
  const std::string& delimiter = csv.delimiter();
  if (delimiter.size() != 1 || delimiter == "\"") {
    return places.Error(path + ".delimiter", path,
                        ".delimiter wants one character, got ",
                        Quoted(delimiter));
  }
  const std::string columns_path = path + ".columns";
  const v1::CsvColumns& columns = csv.columns();
  int64_t unused;
  const bool header = !csv.has_header() || csv.header();
  const std::string label_path = columns_path + ".label";
  if (!header && !ParseColumn(columns.label(), &unused)) {
    return places.Error(label_path, label_path,
                        " wants a number from 0 in a file without header, got ",
                        Quoted(columns.label()));
  }
  TRIBUTARY_RETURN_IF_ERROR(
      ValidateMissing(places, path + ".missing", csv.missing()));
  TRIBUTARY_RETURN_IF_ERROR(ValidateClasses(places, path + ".classes", csv));
  ColumnCheck check(places, header);
  TRIBUTARY_RETURN_IF_ERROR(check.Take(label_path, columns.label()));
  TRIBUTARY_RETURN_IF_ERROR(
      check.TakeAll(columns_path + ".numeric", columns.numeric()));
  TRIBUTARY_RETURN_IF_ERROR(
      check.TakeAll(columns_path + ".categorical", columns.categorical()));
  return check.TakeAll(columns_path + ".ignore", columns.ignore());
}

absl::Status ValidateSource(const Places& places, const std::string& path,
                            const v1::DataSource& source) {
  const std::string kind_path = absl::StrCat(path, ".", SourceKind(source));
  const std::string normalize = kind_path + ".normalize";
  switch (source.kind_case()) {
    case v1::DataSource::kIdx:
      return ValidateNormalize(places, normalize, source.idx().normalize());
    case v1::DataSource::kNpy:
      return ValidateNormalize(places, normalize, source.npy().normalize());
    case v1::DataSource::kSynthetic:
      if (source.synthetic().length() > 0 &&
          source.synthetic().kind() != v1::SyntheticSource::MARKOV_TEXT) {
        return places.Error(kind_path + ".length", kind_path,
                            ".length belongs to markov_text");
      }
      return ValidateNormalize(places, normalize,
                               source.synthetic().normalize());
    case v1::DataSource::kCsv:
      TRIBUTARY_RETURN_IF_ERROR(ValidateCsv(places, kind_path, source.csv()));
      return ValidateNormalize(places, normalize, source.csv().normalize());
    case v1::DataSource::kText:
      if (source.text().begin() < source.text().end()) return absl::OkStatus();
      return places.Error(kind_path + ".end", kind_path,
                          ".end must be above begin, ", source.text().begin(),
                          ", got ", source.text().end());
    case v1::DataSource::KIND_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

// Checks a source beside the training set, at `path`.
absl::Status ValidateBeside(const Places& places, const std::string& path,
                            const v1::DataSource& train,
                            const v1::DataSource& source) {
  if (source.kind_case() != train.kind_case()) {
    return places.Error(path, path, " wants the kind of data.train, ",
                        SourceKind(train), ", got ", SourceKind(source));
  }
  TRIBUTARY_RETURN_IF_ERROR(ValidateSource(places, path, source));
  if (train.has_synthetic() &&
      train.synthetic().kind() != source.synthetic().kind()) {
    const std::string kind = path + ".synthetic.kind";
    return places.Error(kind, kind, " differs from data.train's");
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
  if (data.has_stream() && data.train().has_synthetic()) {
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
