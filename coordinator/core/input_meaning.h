// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tributary/v1/checkpoint.pb.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/job.pb.h"
#include "tributary/v1/preprocessing.pb.h"

namespace tributary {

// The meaning of a sample's inputs and classes, in the form a manifest keeps.
v1::InputMeaning MeaningOf(const v1::Preprocessing& preprocessing);

// Describes what a model trained with `before` would misinterpret now, for
// example "the classes"; empty: nothing. Columns without names are known by
// their positions, which are not compared with names.
std::string MeaningChange(const v1::InputMeaning& before,
                          const v1::InputMeaning& now);

// A checksum of what a job's evaluations depend on beside the weights: the
// loss, the evaluated samples and the preprocessing. Never 0.
uint32_t EvaluationBasis(const v1::JobSpec& job,
                         const v1::DeclareModelRequest& declaration);

}  // namespace tributary
