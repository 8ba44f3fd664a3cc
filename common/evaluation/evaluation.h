#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Adds up the parts of one evaluation, whoever computed them, into metrics of
// the whole. Sums depend on the order of Add in their last bits: add parts in
// rank order.
class Evaluation {
 public:
  // The loss that the job trains says which metrics there are.
  explicit Evaluation(const v1::LossSpec& loss) : loss_(loss) {}

  // InvalidArgument when the part contradicts itself; it is not added then.
  absl::Status Add(const v1::EvaluationPart& part);

  // By name; none before the first sample.
  //   cross_entropy    loss (mean), accuracy
  //   bce_with_logits  loss, accuracy (positive where the logit is >= 0), auc
  //   mse              loss, r2
  // auc is exact, equal scores counting half, and missing unless both classes
  // are there; r2 is missing when all targets are equal. Several outputs of a
  // sample count like several samples, in the loss as their mean.
  std::map<std::string, double> Metrics() const;

 private:
  const v1::LossSpec loss_;
  v1::EvaluationPart sum_;
};

}  // namespace tributary
