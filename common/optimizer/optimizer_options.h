// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tributary {

// The optimizer and its constants, as resolved from the job file. Each kind
// uses only the constants that it lists as its fields (kinds/). Defaults are
// PyTorch's.
struct OptimizerOptions {
  std::string kind = "sgd";     // its name in the job file
  double learning_rate = 0.01;  // the base rate; FTRL's alpha
  double weight_decay = 0;
  // Parameters with fewer than two dimensions don't decay.
  bool decay_matrices_only = false;

  double momentum = 0;  // sgd, rmsprop
  double dampening = 0;
  bool nesterov = false;

  double beta1 = 0.9;  // adam, adamw, lamb
  double beta2 = 0.999;
  double epsilon = 1e-8;  // adam, adamw, lamb, adagrad, rmsprop
  bool amsgrad = false;

  double learning_rate_decay = 0;  // adagrad
  double initial_accumulator = 0;  // adagrad, ftrl

  double alpha = 0.99;  // rmsprop
  bool centered = false;

  bool bias_correction = true;  // lamb
  double clip_min = 0;          // bounds of the weight norm; both 0: none
  double clip_max = 0;

  double beta2_decay = -0.8;  // adafactor
  double epsilon2 = 1e-3;
  double clip_threshold = 1;

  double ftrl_beta = 1;
  double l1 = 0;
  double l2 = 0;

  // True when the received values replace running averages (ParameterSpec),
  // because the sender has already averaged them.
  bool takes_running_averages = false;
};

}  // namespace tributary
