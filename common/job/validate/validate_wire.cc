// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "common/job/validate/validate.h"
#include "common/status/status_macros.h"
#include "common/wire/wire_format.h"

namespace tributary {
namespace {

constexpr char kServer[] = "strategy.parameter_server.";

std::string NameOf(v1::WireFormat wire) { return EncodingOf(wire)->name(); }

// A weight that float16 cannot hold would be lost, and a compressed weight
// would have another value.
absl::Status ValidateWeightsWire(const Places& places, v1::WireFormat wire) {
  if (wire == v1::WIRE_FORMAT_FLOAT32 || wire == v1::WIRE_FORMAT_BFLOAT16) {
    return absl::OkStatus();
  }
  const std::string field = absl::StrCat(kServer, "weights_wire");
  return places.Error(field, field, " wants float32 or bfloat16, got ",
                      NameOf(wire));
}

absl::Status ValidateFields(const Places& places,
                            const v1::ParameterServerSpec& server) {
  const Encoding& encoding = *EncodingOf(server.wire());
  if (server.error_feedback() && !encoding.compresses()) {
    const std::string field = absl::StrCat(kServer, "error_feedback");
    return places.Error(field, field,
                        " wants wire int8, top_k or one_bit, got ",
                        encoding.name());
  }
  if (server.has_top_k_fraction() && server.wire() != v1::WIRE_FORMAT_TOP_K) {
    const std::string field = absl::StrCat(kServer, "top_k_fraction");
    return places.Error(field, field, " wants wire top_k, got ",
                        encoding.name(), "; remove it, as with --set ", field,
                        "=null");
  }
  return absl::OkStatus();
}

// With error feedback, each message carries what the one before left out. So
// every message must count, and a worker's residual must not be lost.
absl::Status ValidateErrorFeedback(const Places& places,
                                   const v1::JobSpec& job) {
  const v1::SyncSpec& sync = job.strategy().parameter_server().sync();
  if (sync.bsp().backup_workers() > 0) {
    const std::string field = absl::StrCat(kServer, "sync.bsp.backup_workers");
    return places.Error(field, field,
                        " wants error_feedback: false, because a contribution "
                        "that is dropped would lose what its worker has "
                        "already taken out of its residual; got ",
                        sync.bsp().backup_workers());
  }
  if (SyncTraitsOf(job).bulk_synchronous() &&
      job.cluster().on_worker_loss() == v1::WORKER_LOSS_SHRINK) {
    return places.Error("cluster.on_worker_loss", "cluster.on_worker_loss",
                        ": shrink wants error_feedback: false, because a lost "
                        "worker's residual is lost with its process");
  }
  if (job.training().nonfinite() == v1::NON_FINITE_SKIP) {
    return places.Error("training.nonfinite", "training.nonfinite",
                        ": skip wants error_feedback: false, because a step "
                        "that is skipped would lose what the workers have "
                        "already taken out of their residuals");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateWire(const Places& places, const v1::JobSpec& job) {
  const v1::ParameterServerSpec& server = job.strategy().parameter_server();
  TRIBUTARY_RETURN_IF_ERROR(ValidateWeightsWire(places, server.weights_wire()));
  TRIBUTARY_RETURN_IF_ERROR(ValidateFields(places, server));
  if (!StrategyOf(job).error_feedback) return absl::OkStatus();
  return ValidateErrorFeedback(places, job);
}

}  // namespace tributary
