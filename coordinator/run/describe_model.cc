// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/describe_model.h"

#include "common/plan/model_cut.h"
#include "common/plan/plan_codec.h"

namespace tributary {

v1::ModelRecord DescribeModel(const v1::JobSpec& job,
                              const v1::DeclareModelRequest& declaration) {
  v1::ModelRecord model;
  model.set_format_version(kModelFormatVersion);
  model.set_name(job.name());
  *model.mutable_sequential() = job.model().sequential();
  for (const ParameterSpec& spec :
       WholeParameters(FromProto(declaration.parameters()))) {
    v1::ParameterRecord* parameter = model.add_parameters();
    parameter->set_name(spec.name);
    parameter->mutable_shape()->Add(spec.shape.begin(), spec.shape.end());
  }
  *model.mutable_loss() = job.training().loss();
  if (!declaration.class_weights().empty()) {
    v1::CrossEntropySpec* loss = model.mutable_loss()->mutable_cross_entropy();
    loss->set_balanced(false);
    *loss->mutable_class_weights() = declaration.class_weights();
  }
  model.set_output(OutputKindOf(job.training().loss()));
  if (declaration.has_preprocessing()) {
    *model.mutable_preprocessing() = declaration.preprocessing();
  }
  model.set_no_preprocessing(declaration.no_preprocessing());
  v1::TrainingDataRecord* data = model.mutable_training_data();
  *data->mutable_source() = job.data().train();
  data->set_rows(declaration.training_rows());
  data->set_checksum(declaration.data_checksum());
  return model;
}

ModelMetrics MetricsOf(const RunSummary& summary) {
  ModelMetrics metrics{.status = summary.status,
                       .steps = summary.totals.steps,
                       .final_loss = summary.totals.final_loss,
                       .weights_sha256 = summary.weights_sha256,
                       .best_weights_sha256 = summary.best_weights_sha256};
  if (const EvaluationRecord* last = summary.LastOn("test")) {
    metrics.test = last->metrics;
  }
  if (const EvaluationRecord* last = summary.LastOn("validation")) {
    metrics.validation = last->metrics;
  }
  return metrics;
}

}  // namespace tributary
