// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/job/oracle.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/status/status_macros.h"

namespace tributary::simulation {
namespace {

// Compares bits, so zeros with different signs differ.
absl::Status SameBits(const float* got, const float* wanted, int64_t n,
                      const std::string& what) {
  if (std::memcmp(got, wanted, n * sizeof(float)) == 0) return absl::OkStatus();
  for (int64_t i = 0; i < n; ++i) {
    if (std::memcmp(got + i, wanted + i, sizeof(float)) == 0) continue;
    return absl::InternalError(absl::StrCat(what, ", element ", i, " is ",
                                            got[i], ", without faults it is ",
                                            wanted[i]));
  }
  return absl::OkStatus();
}

absl::Status SameBlock(const Block& block, const float* got,
                       const Tensors& wanted, const std::string& what) {
  for (const Slice& slice : block.slices) {
    TRIBUTARY_RETURN_IF_ERROR(SameBits(
        got + slice.offset, wanted[slice.parameter].data() + slice.begin,
        slice.size(), absl::StrCat(what, " of parameter ", slice.parameter)));
  }
  return absl::OkStatus();
}

}  // namespace

void Oracle::Judge(const std::string& what, const absl::Status& status) {
  if (status.ok()) return;
  world_->Violate(absl::StrCat(what, ": ", std::string(status.message())));
}

void Oracle::Shown(const Block& block, int64_t version, const float* weights,
                   const std::optional<Reader>& reader) {
  const absl::Status status = CheckShown(block, version, weights, reader);
  if (status.ok()) return;
  Judge(absl::StrCat("shard ", block.shard, ", block ", block.index,
                     " shows version ", version,
                     reader ? absl::StrCat(" to rank ", reader->rank, " after ",
                                           reader->finished, " steps")
                            : ""),
        status);
}

absl::Status Oracle::CheckShown(const Block& block, int64_t version,
                                const float* weights,
                                const std::optional<Reader>& reader) {
  if (model_->tagged()) {
    for (const Slice& slice : block.slices) {
      TRIBUTARY_RETURN_IF_ERROR(
          CheckTagged(weights + slice.offset, version, reader));
    }
    return absl::OkStatus();
  }
  if (version < 0 || version > scenario_.steps) {
    return absl::InternalError("there is no such version");
  }
  return SameBlock(block, weights, model_->reference().After(version).weights,
                   "the weight");
}

absl::Status Oracle::CheckTagged(const float* weights, int64_t version,
                                 const std::optional<Reader>& reader) const {
  const auto tags = absl::MakeConstSpan(weights, model_->tags().size());
  if (scenario_.gathers()) {
    return model_->tags().CheckMeans(
        tags, version, scenario_.workers - scenario_.backup_workers);
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                             model_->tags().StepsIn(tags));
  int64_t all = 0;
  for (int64_t s : steps) all += s;
  if (all != version) {
    return absl::InternalError(
        absl::StrCat("it holds ", all, " contributions"));
  }
  if (!reader) return absl::OkStatus();
  if (steps[reader->rank] < reader->finished) {
    return absl::InternalError(absl::StrCat("it holds ", steps[reader->rank],
                                            " of the reader's own steps"));
  }
  const int64_t every = scenario_.checkpoint_every;
  const bool barrier = every > 0 && reader->finished % every == 0;
  if (scenario_.sync == Scenario::Sync::kAsync && !barrier) {
    return absl::OkStatus();
  }
  const int64_t slowest = *std::min_element(steps.begin(), steps.end());
  const int64_t bound = barrier ? 0 : scenario_.staleness;
  if (reader->finished - slowest > bound) {
    return absl::InternalError(absl::StrCat(
        "it holds ", slowest, " steps of the slowest worker, ",
        reader->finished - slowest, " behind the reader; the bound is ", bound,
        barrier ? " where a checkpoint is due" : ""));
  }
  return absl::OkStatus();
}

void Oracle::Cut(const BlockCut& cut) {
  const std::string what =
      absl::StrCat("the cut of shard ", cut.block->shard, ", block ",
                   cut.block->index, " after ", cut.steps, " steps");
  if (!model_->tagged()) {
    const auto& wanted = model_->reference().After(cut.steps);
    Judge(what, SameBlock(*cut.block, cut.weights.data(), wanted.weights,
                          "the weight"));
    for (size_t i = 0; i < wanted.state.size(); ++i) {
      Judge(what, SameBlock(*cut.block, cut.state[i], wanted.state[i],
                            absl::StrCat("state ", i)));
    }
    return;
  }
  for (const Slice& slice : cut.block->slices) {
    const auto tags = absl::MakeConstSpan(cut.weights.data() + slice.offset,
                                          model_->tags().size());
    if (scenario_.gathers()) {
      Judge(what,
            model_->tags().CheckMeans(
                tags, cut.steps, scenario_.workers - scenario_.backup_workers));
      continue;
    }
    const auto steps = model_->tags().StepsIn(tags);
    Judge(what, steps.status());
    if (!steps.ok()) return;
    for (int64_t s : *steps) {
      if (s == cut.steps) continue;
      Judge(what, absl::InternalError(
                      absl::StrCat("it holds ", s, " steps of some rank")));
    }
  }
}

absl::Status Oracle::CheckWhole(const WholeState& whole, bool with_state) {
  if (!model_->tagged()) {
    const auto& wanted = model_->reference().After(whole.step);
    for (size_t p = 0; p < whole.weights.size(); ++p) {
      const auto n = static_cast<int64_t>(whole.weights[p].size());
      TRIBUTARY_RETURN_IF_ERROR(SameBits(whole.weights[p].data(),
                                         wanted.weights[p].data(), n,
                                         absl::StrCat("parameter ", p)));
      for (size_t i = 0; with_state && i < wanted.state.size(); ++i) {
        TRIBUTARY_RETURN_IF_ERROR(
            SameBits(whole.state[i][p].data(), wanted.state[i][p].data(), n,
                     absl::StrCat("state ", i, " of parameter ", p)));
      }
    }
    return absl::OkStatus();
  }
  for (const std::vector<float>& tensor : whole.weights) {
    const auto tags = absl::MakeConstSpan(tensor.data(), model_->tags().size());
    if (scenario_.gathers()) {
      TRIBUTARY_RETURN_IF_ERROR(model_->tags().CheckMeans(
          tags, whole.step, scenario_.workers - scenario_.backup_workers));
      continue;
    }
    TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                               model_->tags().StepsIn(tags));
    for (int64_t s : steps) {
      if (s != whole.step) {
        return absl::InternalError(
            absl::StrCat("it holds ", s, " steps of some rank"));
      }
    }
  }
  return absl::OkStatus();
}

void Oracle::Checkpoint(const WholeState& whole) {
  Judge(absl::StrCat("the checkpoint of step ", whole.step),
        CheckWhole(whole, /*with_state=*/true));
}

void Oracle::Final(int64_t step, const Tensors& weights) {
  WholeState whole;
  whole.step = step;
  whole.weights = weights;
  Judge(absl::StrCat("the final weights, after step ", step),
        CheckWhole(whole, /*with_state=*/false));
}

}  // namespace tributary::simulation
