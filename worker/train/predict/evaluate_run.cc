// SPDX-License-Identifier: Apache-2.0
#include "worker/train/predict/evaluate_run.h"

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/evaluation/evaluation.h"
#include "common/files/atomic_file.h"
#include "common/job/job_file.h"
#include "common/job/sources/source_kind.h"
#include "common/status/status_macros.h"
#include "worker/train/data/open_data.h"
#include "worker/train/data/read_source.h"
#include "worker/train/model/evaluator.h"
#include "worker/train/model/loss.h"
#include "worker/train/predict/confusion.h"
#include "worker/train/predict/inputs/input_rows.h"
#include "worker/train/predict/predictor.h"

namespace tributary {
namespace {

// Fills a batch with rows and labels, gathered for the model; no rows at the
// end.
using FillBatch = std::function<absl::Status(Batch*)>;

struct EvaluatedData {
  std::string name;
  FillBatch fill;
  std::shared_ptr<InputRows> input;        // null: the rows are a Dataset's
  std::vector<std::string> warnings = {};  // in addition to those of `input`
  int64_t more_files = 0;                  // of the set, after the named one
};

EvaluatedData FromInput(const Predictor* predictor,
                        std::unique_ptr<InputRows> opened, std::string name) {
  std::shared_ptr<InputRows> input = std::move(opened);
  const auto fill = [predictor, input](Batch* batch) -> absl::Status {
    TRIBUTARY_ASSIGN_OR_RETURN(RawData raw, input->Next(predictor->max_rows()));
    batch->rows = 0;
    if (raw.rows == 0) return absl::OkStatus();
    return predictor->Gather(std::move(raw), batch);
  };
  return {.name = std::move(name), .fill = fill, .input = input};
}

// Rows to evaluate may have categories that the training data lack, as a test
// set may.
InputOptions LabelledRows(TargetKind kind) {
  return {.labels = true, .kind = kind, .allow_unknown = true};
}

// The files and the rows of a source of a job file.
InputOptions OptionsOf(const v1::DataSource& source, TargetKind kind) {
  InputOptions options = LabelledRows(kind);
  const SourceKind* const source_kind = KindOf(source);
  if (source_kind == nullptr) return options;
  v1::DataSource copy = source;
  const std::vector<SourceKind::Files> lists = source_kind->FilesOf(&copy);
  const auto set = [&lists](size_t list, std::string* first,
                            std::vector<std::string>* more) {
    if (list >= lists.size() || lists[list].paths->empty()) return;
    const auto& paths = *lists[list].paths;
    *first = paths.Get(0);
    more->assign(paths.begin() + 1, paths.end());
  };
  set(0, &options.path, &options.more_paths);
  set(1, &options.labels_path, &options.more_labels);
  const SourceRows rows = RowsOf(source);
  options.range = {rows.first_row, rows.rows};
  if (source.has_text()) {
    options.stride = source.text().stride();
    options.begin = source.text().begin();
    options.end = source.text().has_end() ? source.text().end() : 1;
  }
  return options;
}

absl::StatusOr<EvaluatedData> FromDataset(
    const Predictor* predictor, const std::shared_ptr<const Dataset>& data) {
  const auto& wanted = predictor->preprocessing().feature_shape();
  if (!absl::c_equal(data->feature_shape(), wanted)) {
    return absl::InvalidArgumentError(absl::StrCat(
        data->name(), ": samples are ", ShapeText(data->feature_shape()),
        ", the model's are ", ShapeText({wanted.begin(), wanted.end()})));
  }
  if (data->target_kind() == TargetKind::kClass) {
    TRIBUTARY_RETURN_IF_ERROR(data->CheckClasses(predictor->outputs()));
  }
  auto next = std::make_shared<int64_t>(0);
  const auto fill = [predictor, data, next](Batch* batch) {
    std::vector<int64_t> rows;
    while (*next < data->rows() &&
           static_cast<int64_t>(rows.size()) < predictor->max_rows()) {
      rows.push_back((*next)++);
    }
    return data->Fetch(rows, batch);
  };
  return EvaluatedData{.name = data->name(), .fill = fill, .input = nullptr};
}

// Generated rows are all in memory, as in training.
absl::StatusOr<EvaluatedData> FromGenerator(const Predictor* predictor,
                                            const v1::DataSource& source) {
  v1::DataSpec spec;
  *spec.mutable_train() = source;
  v1::NormalizeSpec normalize;
  const v1::NumericFeatures& numeric = predictor->preprocessing().numeric();
  for (int i = 0; i < numeric.mean_size(); ++i) {
    const double offset = numeric.offset().empty() ? 0 : numeric.offset(i);
    normalize.add_mean(offset + numeric.mean(i));
  }
  normalize.mutable_std()->Add(numeric.deviation().begin(),
                               numeric.deviation().end());
  SetNormalize(&normalize, spec.mutable_train());
  TRIBUTARY_ASSIGN_OR_RETURN(TrainTest opened,
                             OpenData(spec, predictor->target_kind()));
  return FromDataset(predictor, std::move(opened.train));
}

// Opens the training source, the validation rows that a fraction takes out of
// it, and the source of `set`, as the workers did. InvalidArgument if the
// training rows are not those of the run.
absl::StatusOr<TrainTest> OpenTraining(const Predictor* predictor,
                                       const v1::JobSpec& job,
                                       const std::string& set) {
  v1::DataSpec spec = job.data();
  if (set != "test") spec.clear_test();
  if (set != "validation" && !spec.validation().has_fraction()) {
    spec.clear_validation();
  }
  TRIBUTARY_ASSIGN_OR_RETURN(TrainTest opened,
                             OpenData(spec, predictor->target_kind()));
  const uint32_t trained = predictor->record().training_data().checksum();
  if (trained == 0 || opened.train->checksum() == trained) return opened;
  std::string advice = "name it as INPUT to evaluate what it holds now";
  if (spec.validation().has_fraction() && set != "test") {
    advice = "its validation rows are not known";
  } else if (set != "train") {
    advice = absl::StrCat(
        "what the ", set,
        " source, which has fields of its own, takes from it "
        "is not known; name the file of that source as INPUT to read it as the "
        "training source is read");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      opened.train->name(), " has changed since the run: ", advice));
}

// Whether `other` is read by other rules than `train` and an INPUT, such as
// another delimiter or another rule for missing values.
bool IsReadInItsOwnWay(const v1::DataSource& train,
                       const v1::DataSource& other) {
  const auto fields = [](v1::CsvSource csv) {
    csv.clear_path();
    csv.clear_first_row();
    csv.clear_rows();
    csv.clear_normalize();  // compared below, for all kinds
    return csv.SerializeAsString();
  };
  return fields(train.csv()) != fields(other.csv()) ||
         !(NormalizeOptionsOf(train) == NormalizeOptionsOf(other));
}

// Reads a source with fields of its own as the workers read it.
absl::StatusOr<EvaluatedData> FromOwnFields(const Predictor* predictor,
                                            const v1::JobSpec& job,
                                            const std::string& set) {
  TRIBUTARY_ASSIGN_OR_RETURN(TrainTest opened,
                             OpenTraining(predictor, job, set));
  TRIBUTARY_ASSIGN_OR_RETURN(
      EvaluatedData data,
      FromDataset(predictor,
                  std::move(set == "test" ? opened.test : opened.validation)));
  data.warnings = std::move(opened.warnings);
  return data;
}

// Opens the rows that a fraction takes out of the training source, or those
// that it leaves there. Chooses them as the workers chose them.
absl::StatusOr<EvaluatedData> FromFraction(const Predictor* predictor,
                                           const v1::JobSpec& job,
                                           const std::string& set) {
  TRIBUTARY_ASSIGN_OR_RETURN(TrainTest opened,
                             OpenTraining(predictor, job, set));
  return FromDataset(
      predictor,
      std::move(set == "validation" ? opened.validation : opened.train));
}

// The source of a set of the run; null if it has no such set.
const v1::DataSource* SourceOf(const v1::DataSpec& data,
                               const std::string& set) {
  if (set == "train") return &data.train();
  if (set == "test") return data.has_test() ? &data.test() : nullptr;
  return data.validation().has_source() ? &data.validation().source() : nullptr;
}

// Opens a set of the run. `source`: as SourceOf, or the training source from
// which a fraction takes the set.
absl::StatusOr<EvaluatedData> OpenSet(const PredictionOptions& options,
                                      const v1::JobSpec& job,
                                      const v1::DataSource& source,
                                      const Predictor* predictor) {
  if (job.data().validation().has_fraction() && options.data != "test") {
    return FromFraction(predictor, job, options.data);
  }
  if (IsReadInItsOwnWay(job.data().train(), source)) {
    return FromOwnFields(predictor, job, options.data);
  }
  if (IsGenerated(source)) return FromGenerator(predictor, source);
  if (options.data == "train") {
    TRIBUTARY_RETURN_IF_ERROR(
        OpenTraining(predictor, job, options.data).status());
  }
  const InputOptions input_options =
      OptionsOf(source, predictor->target_kind());
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<InputRows> input,
      OpenInput(predictor->preprocessing(), input_options));
  return FromInput(predictor, std::move(input), input_options.path);
}

absl::StatusOr<EvaluatedData> OpenEvaluated(const PredictionOptions& options,
                                            const Predictor* predictor) {
  const TargetKind kind = predictor->target_kind();
  if (!options.input.empty()) {
    InputOptions rows = LabelledRows(kind);
    rows.path = options.input;
    rows.labels_path = options.labels;
    TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<InputRows> input,
                               OpenInput(predictor->preprocessing(), rows));
    return FromInput(predictor, std::move(input), options.input);
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const v1::JobSpec job,
                             ReadRecordedJob(options.evaluate));
  const bool by_fraction =
      options.data == "validation" && job.data().validation().has_fraction();
  const v1::DataSource* const source =
      SourceOf(job.data(), by_fraction ? "train" : options.data);
  if (source == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.evaluate, "/job.yaml has no data.", options.data,
        "; wanted an INPUT with labels, or --data ",
        job.data().has_validation() ? "validation or " : "", "train"));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(EvaluatedData data,
                             OpenSet(options, job, *source, predictor));
  data.more_files =
      static_cast<int64_t>(OptionsOf(*source, kind).more_paths.size());
  return data;
}

struct Outcome {
  Evaluation evaluation;
  Confusion confusion;
  int64_t rows = 0;
};

absl::Status Evaluate(Predictor* predictor, const EvaluatedData& data,
                      Outcome* outcome) {
  const v1::LossSpec& spec = predictor->record().loss();
  const bool classes = predictor->target_kind() == TargetKind::kClass;
  const int64_t size = predictor->model()->output_size();
  const int64_t outputs = classes ? predictor->outputs() : size;
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<Loss> loss,
      Loss::Create(spec, {.ops = predictor->ops(),
                          .max_rows = predictor->max_rows(),
                          .outputs = outputs,
                          .positions = size / outputs}));
  Batch batch;
  const auto next_batch = [&]() -> absl::StatusOr<EvaluationBatch> {
    TRIBUTARY_RETURN_IF_ERROR(data.fill(&batch));
    outcome->rows += batch.rows;
    return EvaluationBatch{
        .features = batch.features.data(),
        .targets = {batch.labels.empty() ? nullptr : batch.labels.data(),
                    batch.targets.empty() ? nullptr : batch.targets.data()},
        .rows = batch.rows};
  };
  const auto forward =
      [&](const EvaluationBatch&) -> absl::StatusOr<const float*> {
    const absl::Span<const float> logits = predictor->Forward(batch);
    outcome->confusion.Add(batch, logits);
    return logits.data();  // on the CPU, device memory is host memory
  };
  TRIBUTARY_ASSIGN_OR_RETURN(
      const v1::EvaluationPart part,
      EvaluateOutputs(predictor->ops(), predictor->model_shape(), loss.get(),
                      spec, next_batch, forward));
  return outcome->evaluation.Add(part);
}

// The error about data without rows, or only with rows that are left out.
absl::Status NothingToEvaluate(const EvaluatedData& data) {
  std::vector<std::string> warnings;
  if (data.input != nullptr) warnings = data.input->TakeWarnings();
  return absl::InvalidArgumentError(absl::StrCat(
      warnings.empty() ? absl::StrCat(data.name, ": there are no rows")
                       : absl::StrJoin(warnings, "; "),
      "; wanted at least one row to evaluate"));
}

}  // namespace

absl::Status EvaluateRun(const PredictionOptions& options) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<Predictor> predictor,
      Predictor::Open(options.evaluate, {options.weights, options.last}));
  TRIBUTARY_ASSIGN_OR_RETURN(const EvaluatedData data,
                             OpenEvaluated(options, predictor.get()));
  Outcome outcome{
      .evaluation = Evaluation(predictor->record().loss()),
      .confusion = Confusion(predictor->record(), predictor->outputs())};
  TRIBUTARY_RETURN_IF_ERROR(Evaluate(predictor.get(), data, &outcome));
  if (outcome.rows == 0) return NothingToEvaluate(data);
  std::vector<std::string> warnings = data.warnings;
  if (data.input != nullptr) {
    for (std::string& warning : data.input->TakeWarnings()) {
      warnings.push_back(std::move(warning));
    }
  }
  for (const std::string& warning : warnings) {
    std::fprintf(stderr, "tributary: %s\n", warning.c_str());
  }
  const EvaluationReport report{.data = data.name,
                                .more_files = data.more_files,
                                .weights = predictor->weights(),
                                .rows = outcome.rows,
                                .metrics = outcome.evaluation.Metrics()};
  const std::string text = options.json ? ReportJson(report, outcome.confusion)
                                        : ReportText(report, outcome.confusion);
  if (!options.output.empty()) return WriteOutput(options.output, text);
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace tributary
