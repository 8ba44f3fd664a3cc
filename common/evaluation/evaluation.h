// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Adds up the parts of one evaluation into metrics of the whole. The last bits
// of the sums depend on the order of Add, so add parts in rank order.
class Evaluation {
 public:
  // The job's training loss determines which metrics there are.
  explicit Evaluation(const v1::LossSpec& loss) : loss_(loss) {}

  // InvalidArgument when the part contradicts itself or the earlier parts; then
  // it is not added.
  absl::Status Add(const v1::EvaluationPart& part);

  // Metrics by name; empty before the first sample.
  //   cross_entropy    loss (mean), accuracy; perplexity for sequences, unless
  //                    the loss has class weights or label smoothing
  //   bce_with_logits  loss, accuracy (positive where the logit is >= 0), auc
  //   mse              loss, r2
  // auc is exact, with equal scores counted half, and absent unless both
  // classes occur. r2 is absent when all targets are equal. Each output of a
  // sample counts like a sample; the loss is the mean over all outputs.
  std::map<std::string, double> Metrics() const;

 private:
  const v1::LossSpec loss_;
  v1::EvaluationPart sum_;
};

}  // namespace tributary
