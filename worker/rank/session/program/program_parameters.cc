// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/program/program_parameters.h"

#include <algorithm>
#include <utility>

namespace tributary {
namespace {

constexpr int64_t kAlignment = 16;  // elements: a cache line

int64_t RoundedUp(int64_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

ProgramParameters::ProgramParameters(ParameterSpecs specs,
                                     std::vector<float*> weights, Memory memory)
    : specs_(std::move(specs)), programs_(std::move(weights)) {
  memory == Memory::kForServers ? ShareGradients() : MakeArrays();
}

void ProgramParameters::ShareGradients() {
  weights_ = programs_;
  size_t bytes = 1;
  for (const ParameterSpec& spec : specs_) {
    bytes += SharedArena::Taken(spec.size() * sizeof(float));
  }
  if (auto arena = SharedArena::Create(bytes); arena.ok()) arena_ = *arena;
  for (const ParameterSpec& spec : specs_) {
    buffers_.emplace_back(spec.size(), /*stagger=*/0, arena_);
    gradients_.push_back(buffers_.back().data());
  }
}

void ProgramParameters::MakeArrays() {
  int64_t total = 0;
  for (const ParameterSpec& spec : specs_) total += RoundedUp(spec.size());
  for (int stagger : {0, 1}) {
    std::fill_n(buffers_.emplace_back(total, stagger).data(), total, 0.0f);
  }
  float *gradient = buffers_[0].data(), *weight = buffers_[1].data();
  for (const ParameterSpec& spec : specs_) {
    gradients_.push_back(gradient);
    weights_.push_back(weight);
    gradient += RoundedUp(spec.size());
    weight += RoundedUp(spec.size());
  }
}

void ProgramParameters::Publish(int64_t steps) {
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (weights_[i] == programs_[i]) continue;
    std::copy_n(weights_[i], specs_[i].size(), programs_[i]);
  }
  seal_.Close(specs_, programs_, steps);
}

std::string ProgramParameters::FirstChanged() const {
  const int changed = seal_.FirstChanged(specs_, programs_);
  return changed < 0 ? "" : specs_[changed].name;
}

std::vector<std::vector<float>> ProgramParameters::CopyOfPrograms() const {
  std::vector<std::vector<float>> copies;
  for (size_t i = 0; i < specs_.size(); ++i) {
    copies.emplace_back(programs_[i], programs_[i] + specs_[i].size());
  }
  return copies;
}

}  // namespace tributary
