#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/job.pb.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

// What a plan for this model says of the job alone: no epoch, servers or start.
v1::Plan PlanOf(const v1::DeclareModelRequest& model, const v1::JobSpec& job);

// InvalidArgument: no plan can be made of it, as where ranks hold a parameter
// that the job's mesh does not have.
absl::Status CheckDeclaration(const v1::DeclareModelRequest& model,
                              const v1::JobSpec& job);

// Whether these checksums are of different training data; 0: unknown.
bool OtherData(uint32_t one, uint32_t other);

// In what another rank's declaration of the model differs from the first;
// empty: in nothing.
std::string DeclarationDifference(const v1::DeclareModelRequest& first,
                                  const v1::DeclareModelRequest& other);

}  // namespace tributary
