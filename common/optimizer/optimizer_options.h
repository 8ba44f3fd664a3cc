// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

namespace tributary {

// The constants that only some kinds of optimizers have, grouped by the kinds
// that use them. Defaults are PyTorch's.

struct MomentumConstants {  // sgd; rmsprop uses momentum alone
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
};

struct MomentConstants {  // adam, adamw, lamb, lion; amsgrad: adam, adamw
  double beta1 = 0.9;
  double beta2 = 0.999;
  bool amsgrad = false;
};

struct AdagradConstants {  // adagrad; ftrl uses initial_accumulator
  double learning_rate_decay = 0;
  double initial_accumulator = 0;
};

struct RmspropConstants {
  double alpha = 0.99;
  bool centered = false;
};

struct LambConstants {
  bool bias_correction = true;
  double clip_min = 0;  // bounds of the weight norm; both 0: no bounds
  double clip_max = 0;
};

struct AdafactorConstants {
  double beta2_decay = -0.8;
  double epsilon2 = 1e-3;
  double clip_threshold = 1;
};

struct FtrlConstants {
  double ftrl_beta = 1;
  double l1 = 0;
  double l2 = 0;
};

// The optimizer and its constants, as resolved from the job file. Each kind
// uses only the constants that it lists as its fields (kinds/).
struct OptimizerOptions : MomentumConstants,
                          MomentConstants,
                          AdagradConstants,
                          RmspropConstants,
                          LambConstants,
                          AdafactorConstants,
                          FtrlConstants {
  std::string kind = "sgd";     // its name in the job file
  double learning_rate = 0.01;  // the base rate; FTRL's alpha
  double weight_decay = 0;
  // Parameters with fewer than two dimensions don't decay.
  bool decay_matrices_only = false;
  double epsilon = 1e-8;
  // True when the received values replace running averages (ParameterSpec),
  // because the sender has already averaged them.
  bool takes_running_averages = false;
};

inline OptimizerOptions OptimizerOf(std::string kind, double learning_rate) {
  OptimizerOptions options;
  options.kind = std::move(kind);
  options.learning_rate = learning_rate;
  return options;
}

}  // namespace tributary
