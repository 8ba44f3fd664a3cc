// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/plan/partition_plan.h"
#include "tributary/v1/plan.pb.h"

namespace tributary {

void ToProto(const ParameterSpecs& specs,
             google::protobuf::RepeatedPtrField<v1::ParameterSpec>* out);
ParameterSpecs FromProto(
    const google::protobuf::RepeatedPtrField<v1::ParameterSpec>& specs);

// The workers' mesh of a plan that MakePartitionPlan has accepted.
DeviceMesh MeshOf(const v1::Plan& plan);

// Makes the partition that a published plan stands for: one shard per server,
// or one shard if it has no servers. Errors as PartitionPlan::Create;
// InvalidArgument also: a mesh of another number of workers, a parameter that
// nobody holds, a wire format that this program does not have, a top_k_fraction
// that is out of range, or another number of incarnations than workers.
absl::StatusOr<PartitionPlan> MakePartitionPlan(const v1::Plan& plan);

}  // namespace tributary
