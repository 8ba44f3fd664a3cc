// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Calls `visit` for each list of files that a job's data name, with the list's
// place in the job ("data.train.idx.images"), and stops at the first error.
absl::Status VisitDataFiles(
    v1::DataSpec* data,
    absl::FunctionRef<
        absl::Status(const std::string& place,
                     google::protobuf::RepeatedPtrField<std::string>* files)>
        visit);

// All files that a resolved job reads: its initial weights and its data.
std::vector<std::string> FilesOfJob(const v1::JobSpec& job);

}  // namespace tributary
