// SPDX-License-Identifier: Apache-2.0
#include "common/member/submit_job.h"

#include <memory>

#include "common/member/coordinator_client.h"
#include "common/status/status_macros.h"

namespace tributary {

absl::Status SubmitJob(const std::string& coordinator,
                       const std::vector<std::string>& settings,
                       absl::Duration timeout, const CallerProof& proof,
                       const Clock* clock) {
  CoordinatorClient::Options options;
  options.address = coordinator;
  options.clock = clock;
  options.proof = proof;
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorClient> client,
                             CoordinatorClient::Create(std::move(options)));
  v1::SubmitJobRequest request;
  request.mutable_settings()->Add(settings.begin(), settings.end());
  return client->SubmitJob(request, timeout);
}

}  // namespace tributary
