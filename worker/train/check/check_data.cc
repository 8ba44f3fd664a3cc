// SPDX-License-Identifier: Apache-2.0
#include "worker/train/check/check_data.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/files/file_checksum.h"
#include "common/files/safetensors.h"
#include "common/job/files/job_files.h"
#include "common/job/initial_tensors.h"
#include "common/job/job_course.h"
#include "common/job/job_options.h"
#include "common/job/learning_rate_schedule.h"
#include "common/job/validate/validate.h"
#include "common/layers/model_costs.h"
#include "common/status/about_field.h"
#include "common/status/status_macros.h"
#include "kernels/device.h"
#include "worker/train/check/compare_data.h"
#include "worker/train/check/initial_meaning.h"
#include "worker/train/data/open_data.h"

namespace tributary {
namespace {

int64_t FileBytes(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

int64_t BytesOf(v1::DataSpec spec) {
  int64_t bytes = 0;
  VisitDataFiles(&spec, [&bytes](const std::string&, const auto* files) {
    for (const std::string& path : *files) bytes += FileBytes(path);
    return absl::OkStatus();
  }).IgnoreError();  // the visitor never fails
  return bytes;
}

class Check {
 public:
  explicit Check(const PlacedJob& job) : job_(job.job), places_(job.places) {}

  absl::StatusOr<std::string> Run() {
    TRIBUTARY_RETURN_IF_ERROR(CheckDevice());
    TRIBUTARY_RETURN_IF_ERROR(CheckInitialValues());
    if (BytesOf(job_.data()) > kMostCheckedBytes) return std::string();
    absl::StatusOr<TrainTest> data =
        OpenData(job_.data(), TargetKindOf(job_.training().loss()));
    if (!data.ok()) {
      return places_.Error(FieldOf(data.status()), data.status().message());
    }
    for (const Dataset* set :
         {data->train.get(), data->validation.get(), data->test.get()}) {
      if (set != nullptr) TRIBUTARY_RETURN_IF_ERROR(CheckSet(*set));
    }
    TRIBUTARY_RETURN_IF_ERROR(
        CheckInitialMeaning(job_, places_, data->preprocessing));
    TRIBUTARY_RETURN_IF_ERROR(CheckSchedule(data->train->rows()));
    record_.update(nlohmann::ordered_json::parse(DataRecord(*data)));
    std::vector<std::string> notes;
    for (const std::string& warning : data->warnings) {
      notes.push_back(absl::StrCat(places_.Find("data"), ": ", warning));
    }
    const std::string scales = InitialScaleWarning(job_, data->preprocessing);
    if (!scales.empty()) {
      notes.push_back(
          absl::StrCat(places_.Find("model.initialize_from"), ": ", scales));
    }
    std::string steps = NoteOnSteps(data->train->rows());
    if (!steps.empty()) notes.push_back(std::move(steps));
    return absl::StrJoin(notes, "\n");
  }

  std::string record() const { return record_.empty() ? "" : record_.dump(); }

 private:
  absl::Status CheckDevice() const {
    if (job_.device() != v1::DEVICE_CUDA) return absl::OkStatus();
    std::string why;
    if (CreateCudaOps(&why) != nullptr) return absl::OkStatus();
    return places_.Error("device", "device wants cuda, but ", why);
  }

  // Checks that the tensors to start from have finite values. Records the
  // checksum of their file.
  absl::Status CheckInitialValues() {
    const std::string& file = job_.model().initialize_from();
    if (file.empty() || FileBytes(file) > kMostCheckedBytes) {
      return absl::OkStatus();
    }
    TRIBUTARY_ASSIGN_OR_RETURN(const SafetensorsReader reader,
                               SafetensorsReader::Open(file));
    TRIBUTARY_ASSIGN_OR_RETURN(
        std::vector<int> sources,
        MatchInitialTensors(places_, job_.model(), reader.tensors()));
    std::vector<float> values;
    for (const int source : sources) {
      if (source == kFromSeed) continue;
      values.resize(reader.tensors()[source].size());
      const absl::Status read =
          reader.ReadFinite(source, absl::MakeSpan(values));
      if (!read.ok()) {
        return places_.Error("model.initialize_from",
                             "model.initialize_from: ", read.message());
      }
    }
    TRIBUTARY_RETURN_IF_ERROR(CheckInitialFile(job_, places_));
    TRIBUTARY_ASSIGN_OR_RETURN(const std::string checksum, FileChecksum(file));
    record_["initial_weights"] = {{"checksum", checksum}};
    return absl::OkStatus();
  }

  // Checks that the learning rate's warm-up ends before the training, whose
  // number of steps depends on the number of samples.
  absl::Status CheckSchedule(int64_t rows) const {
    if (!job_.training().has_epochs()) return absl::OkStatus();
    const std::optional<int64_t> steps =
        DataCourse(StretchOf(job_, rows)).StepsOf(job_.training().epochs());
    if (!steps) return absl::OkStatus();
    v1::JobSpec job = job_;
    v1::ScheduleSpec* const schedule =
        job.mutable_training()->mutable_learning_rate_schedule();
    *schedule = WithLength(*schedule, *steps);
    const absl::Status fits = ValidateTraining(places_, job);
    if (fits.ok()) return fits;
    return absl::InvalidArgumentError(absl::StrCat(
        fits.message(), "; ", rows, " samples make ", *steps, " steps"));
  }

  // Returns a note if a step wants more samples than the training set has.
  std::string NoteOnSteps(int64_t rows) const {
    const bool global = job_.data().has_global_batch_size();
    const int64_t batch =
        global ? job_.data().global_batch_size()
               : job_.data().batch_size() * StrategyOf(job_).mesh().data;
    const int64_t samples = batch * job_.training().gradient_accumulation();
    if (samples <= rows) return "";
    const char* path = batch <= rows ? "training.gradient_accumulation"
                       : global      ? "data.global_batch_size"
                                     : "data.batch_size";
    return absl::StrCat(places_.Find(path), ": ", path, " makes a step of ",
                        samples, " samples, but the training set has ", rows,
                        ", so every epoch is a single step");
  }

  // The path of a layer's field, or of the layer if it has no such field.
  std::string LayerPath(const std::string& layer,
                        absl::string_view field) const {
    const std::string of_field = JoinPath(layer, field);
    return places_.Has(of_field) ? of_field : layer;
  }

  absl::Status CheckClassWeights(int64_t classes) const {
    const int weights =
        job_.training().loss().cross_entropy().class_weights_size();
    if (weights == 0 || weights == classes) return absl::OkStatus();
    const std::string path = "training.loss.cross_entropy.class_weights";
    return places_.Error(
        path, path, " has ", weights, weights == 1 ? " value" : " values",
        ", wanted one for each of the model's ", classes, " outputs");
  }

  absl::Status CheckSet(const Dataset& data) const {
    const auto costs = CostsOfModel(job_.model(), data.feature_shape());
    if (!costs.ok()) {
      return places_.Error(
          LayerPath(JoinPath("model", FieldOf(costs.status())), "in"),
          costs.status().message(), "; a sample of ", data.name(), " is ",
          ShapeText(data.feature_shape()));
    }
    const v1::LayerSpec& first = job_.model().sequential(0);
    if (first.has_embedding()) {
      const absl::Status status = data.CheckTokens(first.embedding().tokens());
      if (!status.ok()) {
        return places_.Error("model.sequential.0.embedding.tokens",
                             status.message());
      }
    }
    const Shape& outputs = costs->layers.back().output_shape;
    TRIBUTARY_RETURN_IF_ERROR(CheckClassWeights(outputs.back()));
    const LayerCost& layer = costs->layers.back();
    const std::string last = LayerPath(
        absl::StrCat("model.sequential.", layer.name, ".", layer.kind), "out");
    absl::Status status = data.CheckTargets(outputs);
    if (status.ok() && data.target_kind() == TargetKind::kClass) {
      status = data.CheckClasses(outputs.back());
    }
    return status.ok() ? status : places_.Error(last, status.message());
  }

  const v1::JobSpec& job_;
  const Places& places_;
  nlohmann::ordered_json record_ = nlohmann::ordered_json::object();
};

}  // namespace

absl::StatusOr<std::string> CheckData(const PlacedJob& job,
                                      std::string* record) {
  Check check(job);
  absl::StatusOr<std::string> note = check.Run();
  if (record != nullptr) *record = check.record();
  return note;
}

absl::StatusOr<std::string> CheckDataOfFile(
    const std::string& path, const std::vector<std::string>& overrides,
    std::string* record) {
  TRIBUTARY_ASSIGN_OR_RETURN(const PlacedJob job,
                             ReadPlacedJob(path, overrides));
  TRIBUTARY_RETURN_IF_ERROR(CheckHasModel(job.job, path));
  return CheckData(job, record);
}

}  // namespace tributary
