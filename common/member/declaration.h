// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/data_course.h"
#include "common/base/parameter_spec.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Describes a worker's model and data to the coordinator. All workers derive
// the same declaration from the job and the data.
struct Declaration {
  ParameterSpecs parameters;  // in forward order
  int64_t total_steps = 0;
  int64_t steps_per_epoch = 0;
  DataCourse course = {};            // empty: unknown
  uint32_t data_checksum = 0;        // 0: generated data
  uint32_t evaluation_checksum = 0;  // of validation and test; 0: generated
  uint32_t evaluated_checksum = 0;   // of the set by which the job decides
  std::vector<std::string> settings = {};  // of a program (SubmitJobRequest)
  int64_t training_rows = 0;               // 0: unknown
  const v1::Preprocessing* preprocessing = nullptr;  // null: unknown
  std::string no_preprocessing = {};
  std::vector<double> class_weights = {};  // of a loss with `balanced`

  // Makes the request, but leaves rank and incarnation unset.
  v1::DeclareModelRequest ToRequest() const;
};

}  // namespace tributary
