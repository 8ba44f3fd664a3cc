// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/check_arrays.h"

namespace tributary::testing {
namespace {

constexpr int64_t kIgnored = -100;

std::vector<float> Zeros(int64_t n) {
  return std::vector<float>(static_cast<size_t>(n), 0.0f);
}

// Labels in range, except one ignored row and one label out of range.
std::vector<int64_t> Labels(int64_t rows, int64_t classes) {
  std::vector<int64_t> labels = Integers(rows, classes, 1);
  if (rows > 4) {
    labels[1] = kIgnored;
    labels[3] = classes;
  }
  return labels;
}

// Returns the losses, whose logarithm comes from the library, or the other
// outputs.
Outputs RunCrossEntropy(Ops& ops, bool losses) {
  Outputs loss_outputs, others;
  for (int64_t classes :
       {int64_t{1}, int64_t{10}, int64_t{1000}, int64_t{5003}}) {
    for (const bool weighted : {false, true}) {
      const int64_t rows = 70;
      std::vector<float> values = Numbers(rows * classes, 2);
      for (float& v : values) v *= 20;
      Floats logits(ops, values);
      Floats class_weights(ops, Numbers(classes, 3));
      Ids labels(ops, Labels(rows, classes));
      Floats loss(ops, Zeros(rows)), weight(ops, Zeros(rows));
      CrossEntropyOptions options;
      options.label_smoothing = weighted ? 0.1f : 0.0f;
      if (weighted) options.class_weights = class_weights.data();
      ops.CrossEntropy(rows, classes, logits.data(), labels.data(), options,
                       0.25f, loss.data(), weight.data(), nullptr);
      loss_outputs.push_back(loss.Download());
      // In place, and without row weights.
      ops.CrossEntropy(rows, classes, logits.data(), labels.data(), options,
                       0.25f, loss.data(), nullptr, logits.data());
      loss_outputs.push_back(loss.Download());
      others.push_back(weight.Download());
      others.push_back(logits.Download());
    }
  }
  return losses ? loss_outputs : others;
}

// Classes split over three ranks unevenly, on one device.
Outputs RunCutCrossEntropy(Ops& ops, bool losses) {
  Outputs loss_outputs, others;
  const int64_t rows = 70, total = 103;
  Floats class_weights(ops, Numbers(total, 5));
  for (const bool weighted : {false, true}) {
    CrossEntropyOptions options{.label_smoothing = weighted ? 0.1f : 0.0f};
    if (weighted) options.class_weights = class_weights.data();
    Ids labels(ops, Labels(rows, total));
    std::vector<ClassRange> ranges = {
        {0, 34, total}, {34, 34, total}, {68, 35, total}};
    Floats parts(ops, Zeros(3 * rows * 5)), loss(ops, Zeros(rows));
    for (int rank = 0; rank < 3; ++rank) {
      std::vector<float> values = Numbers(rows * ranges[rank].count, rank + 2);
      for (float& v : values) v *= 20;
      Floats logits(ops, values);
      ops.CrossEntropyPart(rows, ranges[rank], logits.data(), labels.data(),
                           options.class_weights,
                           parts.data() + rank * rows * 5);
    }
    loss_outputs.push_back(parts.Download());
    for (int rank = 0; rank < 3; ++rank) {
      std::vector<float> values = Numbers(rows * ranges[rank].count, rank + 2);
      for (float& v : values) v *= 20;
      Floats logits(ops, values);
      for (float* d : {static_cast<float*>(nullptr), logits.data()}) {
        ops.CrossEntropyOfParts(rows, ranges[rank], logits.data(),
                                labels.data(), 3, parts.data(), options, 0.25f,
                                loss.data(), d);
        loss_outputs.push_back(loss.Download());
      }
      others.push_back(logits.Download());
    }
  }
  return losses ? loss_outputs : others;
}

Outputs RunBce(Ops& ops, bool losses) {
  Outputs loss_outputs, gradients;
  for (int64_t n : {int64_t{0}, int64_t{3}, int64_t{5001}}) {
    std::vector<float> values = Numbers(n, 1), target_values = Numbers(n, 2);
    for (float& v : values) v *= 60;
    for (float& t : target_values) t = t < 0 ? 0 : t;
    Floats logits(ops, values), targets(ops, target_values);
    Floats weights(ops, Numbers(n, 3));
    Floats loss(ops, Zeros(n)), d(ops, Zeros(n));
    ops.BceWithLogits(n, logits.data(), targets.data(), 3.5f, weights.data(),
                      0.5f, loss.data(), d.data());
    loss_outputs.push_back(loss.Download());
    gradients.push_back(d.Download());
    ops.BceWithLogits(n, logits.data(), targets.data(), 1.0f, nullptr, 0.5f,
                      loss.data(), d.data());
    loss_outputs.push_back(loss.Download());
    gradients.push_back(d.Download());
    ops.BceWithLogits(n, logits.data(), targets.data(), 1.0f, nullptr, 0.5f,
                      loss.data(), nullptr);
    loss_outputs.push_back(loss.Download());
  }
  return losses ? loss_outputs : gradients;
}

Outputs RunSquaredError(Ops& ops) {
  Outputs outputs;
  for (int64_t n : {int64_t{0}, int64_t{3}, int64_t{5001}}) {
    Floats prediction(ops, Numbers(n, 1)), targets(ops, Numbers(n, 2));
    Floats loss(ops, Zeros(n)), d(ops, Zeros(n));
    ops.SquaredError(n, prediction.data(), targets.data(), 0.5f, loss.data(),
                     nullptr);
    outputs.push_back(loss.Download());
    ops.SquaredError(n, prediction.data(), targets.data(), 0.5f, loss.data(),
                     d.data());
    outputs.push_back(loss.Download());
    outputs.push_back(d.Download());
  }
  return outputs;
}

}  // namespace

void AddLossChecks(std::vector<AgreementCheck>* checks) {
  checks->push_back({"cross entropy losses", 1e-6,
                     [](Ops& ops) { return RunCrossEntropy(ops, true); }});
  checks->push_back({"cross entropy gradients", 0,
                     [](Ops& ops) { return RunCrossEntropy(ops, false); }});
  checks->push_back({"cut cross entropy losses", 1e-6,
                     [](Ops& ops) { return RunCutCrossEntropy(ops, true); }});
  checks->push_back({"cut cross entropy gradients", 0,
                     [](Ops& ops) { return RunCutCrossEntropy(ops, false); }});
  checks->push_back({"bce with logits losses", 1e-6,
                     [](Ops& ops) { return RunBce(ops, true); }});
  checks->push_back({"bce with logits gradients", 0,
                     [](Ops& ops) { return RunBce(ops, false); }});
  checks->push_back({"squared error", 0, RunSquaredError});
}

}  // namespace tributary::testing
