// SPDX-License-Identifier: Apache-2.0
#include "common/member/declaration.h"

#include "common/job/job_course.h"
#include "common/plan/plan_codec.h"

namespace tributary {

v1::DeclareModelRequest Declaration::ToRequest() const {
  v1::DeclareModelRequest request;
  ToProto(parameters, request.mutable_parameters());
  request.set_total_steps(total_steps);
  request.set_steps_per_epoch(steps_per_epoch);
  CourseToProto(course, request.mutable_course());
  request.set_data_checksum(data_checksum);
  request.set_evaluation_checksum(evaluation_checksum);
  request.set_evaluated_checksum(evaluated_checksum);
  request.mutable_settings()->Add(settings.begin(), settings.end());
  request.set_training_rows(training_rows);
  if (preprocessing != nullptr) {
    *request.mutable_preprocessing() = *preprocessing;
  }
  request.set_no_preprocessing(no_preprocessing);
  request.mutable_class_weights()->Add(class_weights.begin(),
                                       class_weights.end());
  return request;
}

}  // namespace tributary
