// SPDX-License-Identifier: Apache-2.0
#include "worker/check/check_data.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/files/safetensors.h"
#include "common/job/initial_tensors.h"
#include "common/job/job_options.h"
#include "common/job/sources/source_kind.h"
#include "common/layers/layer_kind.h"
#include "common/layers/model_costs.h"
#include "common/status/status_macros.h"
#include "kernels/device.h"
#include "worker/check/compare_data.h"
#include "worker/data/open_data.h"

namespace tributary {
namespace {

std::vector<std::string> FilesOf(const v1::DataSource& source) {
  std::vector<std::string> files;
  const auto add = [&files](const auto& paths) {
    files.insert(files.end(), paths.begin(), paths.end());
  };
  add(source.idx().images());
  add(source.idx().labels());
  add(source.csv().path());
  add(source.npy().features());
  add(source.npy().labels());
  add(source.text().path());
  return files;
}

int64_t FileBytes(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

int64_t BytesOf(const v1::DataSpec& spec) {
  int64_t bytes = 0;
  for (const v1::DataSource* source :
       {&spec.train(), &spec.validation().source(), &spec.test()}) {
    for (const std::string& path : FilesOf(*source)) {
      bytes += FileBytes(path);
    }
  }
  return bytes;
}

// The name in a message about a column: `column 3 ("age"): ...` or
// `columns.label: no column "age"`. Empty: the message names none.
absl::string_view ColumnOfMessage(absl::string_view message) {
  const size_t column = message.find(": column ");
  const size_t columns = message.find(": columns.");
  size_t begin = absl::string_view::npos;
  if (columns != absl::string_view::npos) {
    begin = message.find('"', columns);
  } else if (column != absl::string_view::npos) {
    begin = message.find_first_not_of("0123456789", column + 9);
    if (message.compare(std::min(begin, message.size()), 3, " (\"") != 0) {
      return "";
    }
    begin += 2;
  }
  if (begin == absl::string_view::npos) return "";
  message.remove_prefix(begin + 1);
  return message.substr(0, message.find('"'));
}

// The field of a CSV source that names the column of the message, or the
// source.
std::string FieldOfColumn(const v1::CsvSource& csv, absl::string_view message,
                          const std::string& source) {
  const std::string columns = absl::StrCat(source, ".columns.");
  const absl::string_view column = ColumnOfMessage(message);
  const auto quoted = [column](const std::string& name) {
    return !name.empty() && column == name;
  };
  if (quoted(csv.columns().label())) return columns + "label";
  const std::pair<const char*,
                  const google::protobuf::RepeatedPtrField<std::string>*>
      lists[] = {{"numeric", &csv.columns().numeric()},
                 {"categorical", &csv.columns().categorical()},
                 {"ignore", &csv.columns().ignore()}};
  for (const auto& [field, names] : lists) {
    for (int i = 0; i < names->size(); ++i) {
      if (quoted(names->Get(i))) return absl::StrCat(columns, field, ".", i);
    }
  }
  return source;
}

// Whether a message begins with a file of labels, and with none of samples.
bool IsOfLabels(const v1::DataSource& source, absl::string_view message) {
  const auto begins = [message](const auto& files) {
    return std::any_of(files.begin(), files.end(),
                       [message](const std::string& file) {
                         return absl::StartsWith(message, file + ":");
                       });
  };
  return (begins(source.idx().labels()) || begins(source.npy().labels())) &&
         !begins(source.idx().images()) && !begins(source.npy().features());
}

class Check {
 public:
  explicit Check(const PlacedJob& job) : job_(job.job), places_(job.places) {}

  absl::StatusOr<std::string> Run() {
    TRIBUTARY_RETURN_IF_ERROR(CheckDevice());
    TRIBUTARY_RETURN_IF_ERROR(CheckInitialValues());
    if (BytesOf(job_.data()) > kMostCheckedBytes) return std::string();
    std::string field;
    absl::StatusOr<TrainTest> data =
        OpenData(job_.data(), TargetKindOf(job_.training().loss()), &field);
    if (!data.ok()) return DataError(field, data.status());
    for (const Dataset* set :
         {data->train.get(), data->validation.get(), data->test.get()}) {
      if (set != nullptr) TRIBUTARY_RETURN_IF_ERROR(CheckSet(*set));
    }
    record_ = DataRecord(*data);
    std::vector<std::string> notes;
    for (const std::string& warning : data->warnings) {
      notes.push_back(absl::StrCat(places_.Find("data"), ": ", warning));
    }
    std::string steps = NoteOnSteps(data->train->rows());
    if (!steps.empty()) notes.push_back(std::move(steps));
    return absl::StrJoin(notes, "\n");
  }

  const std::string& record() const { return record_; }

 private:
  absl::Status CheckDevice() const {
    if (job_.device() != v1::DEVICE_CUDA) return absl::OkStatus();
    std::string why;
    if (CreateCudaOps(&why) != nullptr) return absl::OkStatus();
    return places_.Error("device", "device wants cuda, but ", why);
  }

  // Whether the tensors to start from have finite values.
  absl::Status CheckInitialValues() const {
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
    return absl::OkStatus();
  }

  // Says when a step wants more samples than the training set has.
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

  absl::Status DataError(const std::string& field,
                         const absl::Status& status) const {
    if (field == "data.validation.fraction") {
      return places_.Error(field, status.message());
    }
    const v1::DataSpec& data = job_.data();
    const v1::DataSource& source = field == "data.test" ? data.test()
                                   : field == "data.validation.source"
                                       ? data.validation().source()
                                       : data.train();
    std::string path = absl::StrCat(field, ".", SourceKey(source));
    if (source.has_csv()) {
      path = FieldOfColumn(source.csv(), status.message(), path);
    } else if (IsOfLabels(source, status.message())) {
      path += ".labels";
    }
    return places_.Error(path, status.message());
  }

  // The path of a layer's field, or of the layer if it has no such field.
  std::string LayerPath(int layer, absl::string_view field) const {
    const std::string path = absl::StrCat("model.sequential.", layer);
    if (layer >= job_.model().sequential_size()) return path;
    const std::string of_field = absl::StrCat(
        path, ".", LayerKindName(job_.model().sequential(layer)), ".", field);
    return places_.Has(of_field) ? of_field : path;
  }

  // An error about a layer: "layer 2 (linear): ..." is about
  // model.sequential.2.
  absl::Status LayerError(const absl::Status& status) const {
    absl::string_view rest = status.message();
    int layer = 0;
    std::string path = "model";
    if (absl::ConsumePrefix(&rest, "layer ") &&
        absl::SimpleAtoi(rest.substr(0, rest.find_first_not_of("0123456789")),
                         &layer)) {
      path = LayerPath(layer, "in");
    }
    return places_.Error(path, status.message());
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
      return LayerError(absl::InvalidArgumentError(
          absl::StrCat(costs.status().message(), "; a sample of ", data.name(),
                       " is ", ShapeText(data.feature_shape()))));
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
    const std::string last =
        LayerPath(static_cast<int>(costs->layers.size()) - 1, "out");
    absl::Status status = data.CheckTargets(outputs);
    if (status.ok() && data.target_kind() == TargetKind::kClass) {
      status = data.CheckClasses(outputs.back());
    }
    return status.ok() ? status : places_.Error(last, status.message());
  }

  const v1::JobSpec& job_;
  const Places& places_;
  std::string record_;
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
