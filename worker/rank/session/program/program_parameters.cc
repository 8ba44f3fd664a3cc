// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/program/program_parameters.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tributary {
namespace {

constexpr int64_t kAlignment = 16;  // elements: a cache line

int64_t RoundedUp(int64_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

ProgramParameters::ProgramParameters(ParameterSpecs specs,
                                     std::vector<float*> weights,
                                     const std::vector<int>& reserved,
                                     Gradients gradients)
    : specs_(std::move(specs)),
      programs_(std::move(weights)),
      weights_(specs_.size()) {
  if (gradients == Gradients::kShared) {
    ShareGradients();
    for (const int i : reserved) weights_[i] = programs_[i];
  } else {
    gradients_.resize(specs_.size());
    MakeArray(/*stagger=*/0, &gradients_);
  }
  MakeArray(/*stagger=*/1, &weights_);
}

void ProgramParameters::ShareGradients() {
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

void ProgramParameters::MakeArray(int stagger, std::vector<float*>* places) {
  int64_t total = 0;
  for (size_t i = 0; i < specs_.size(); ++i) {
    if ((*places)[i] == nullptr) total += RoundedUp(specs_[i].size());
  }
  float* at = buffers_.emplace_back(total, stagger).data();
  std::fill_n(at, total, 0.0f);
  for (size_t i = 0; i < specs_.size(); ++i) {
    if ((*places)[i] != nullptr) continue;
    (*places)[i] = at;
    at += RoundedUp(specs_[i].size());
  }
}

void ProgramParameters::Publish(int64_t steps) {
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (weights_[i] == programs_[i]) continue;
    std::copy_n(weights_[i], specs_[i].size(), programs_[i]);
  }
  steps_ = steps;
}

std::string ProgramParameters::FirstChanged() const {
  for (size_t i = 0; i < specs_.size(); ++i) {
    const int p = static_cast<int>(i);
    const int64_t size = specs_[i].size();
    if (specs_[i].is_running()) continue;
    if (size <= kSmall) {
      if (!IsUnchanged(p)) return specs_[i].name;
      continue;
    }
    for (int64_t run = steps_ % kStride; run * kRun < size; run += kStride) {
      const int64_t begin = run * kRun;
      if (!IsEqual(p, begin, std::min(kRun, size - begin))) {
        return specs_[i].name;
      }
    }
  }
  return "";
}

bool ProgramParameters::IsUnchanged(int i) const {
  return IsEqual(i, 0, specs_[i].size());
}

bool ProgramParameters::IsEqual(int i, int64_t begin, int64_t count) const {
  if (weights_[i] == programs_[i] || count == 0) return true;
  return std::memcmp(weights_[i] + begin, programs_[i] + begin,
                     static_cast<size_t>(count) * sizeof(float)) == 0;
}

std::vector<std::vector<float>> ProgramParameters::CopyOfPrograms() const {
  std::vector<std::vector<float>> copies;
  for (size_t i = 0; i < specs_.size(); ++i) {
    copies.emplace_back(programs_[i], programs_[i] + specs_[i].size());
  }
  return copies;
}

}  // namespace tributary
