// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/model_record/model_record.h"
#include "coordinator/run/run_record.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/job.pb.h"
#include "tributary/v1/model_record.pb.h"

namespace tributary {

// The record in model.json of a resolved job's model, as its workers have
// declared it. Parameters that the ranks of a group hold in slices are whole.
v1::ModelRecord DescribeModel(const v1::JobSpec& job,
                              const v1::DeclareModelRequest& declaration);

// The metrics that model.json has in addition when the run has ended.
ModelMetrics MetricsOf(const RunSummary& summary);

}  // namespace tributary
