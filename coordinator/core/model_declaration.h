// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/job.pb.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// Returns the part of a plan that follows from the model, the job and the
// servers' addresses, without epoch and start step.
v1::Plan PlanOf(const v1::DeclareModelRequest& model, const v1::JobSpec& job,
                std::vector<std::string> servers);

// InvalidArgument: no plan can be made of the model, for example because ranks
// hold a parameter at a position that the job's mesh does not have, or because
// the plan would be larger than a member takes.
absl::Status CheckDeclaration(const v1::DeclareModelRequest& model,
                              const v1::JobSpec& job);

// Sets the total steps if the program does not declare them but the job does.
// InvalidArgument: the job says another number, or its schedule lasts as long
// as the job and neither program nor job tells that length.
absl::Status ResolveLength(const v1::JobSpec& job,
                           v1::DeclareModelRequest* model);

// Whether the checksums are of different training data; false if one is 0
// (unknown).
bool OtherData(uint32_t one, uint32_t other);

// Describes how another rank's declaration of the model differs from the first;
// empty if it does not.
std::string DeclarationDifference(const v1::DeclareModelRequest& first,
                                  const v1::DeclareModelRequest& other);

}  // namespace tributary
