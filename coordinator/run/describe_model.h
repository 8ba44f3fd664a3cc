// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/model_record/model_record.h"
#include "coordinator/run/run_record.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/job.pb.h"
#include "tributary/v1/model_record.pb.h"

namespace tributary {

// Returns the record in model.json for the model of a resolved job, as its
// workers have declared it. Parameters that a group of ranks holds in slices
// are whole.
v1::ModelRecord DescribeModel(const v1::JobSpec& job,
                              const v1::DeclareModelRequest& declaration);

// The metrics that model.json has in addition when the run has ended.
ModelMetrics MetricsOf(const RunSummary& summary);

}  // namespace tributary
