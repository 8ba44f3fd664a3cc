// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/bisect.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/replay/recorded_tensors.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using DifferencePoint = Bisection::DifferencePoint;
using Seen = Bisection::Seen;
using nlohmann::json;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

std::string ShapeText(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// Describes how the tensors of two models differ; empty: they do not differ, or
// are unknown.
std::string ModelDifference(const ParameterSpecs& a, const ParameterSpecs& b) {
  if (a.empty() || b.empty()) return "";
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].name != b[i].name) {
      return absl::StrCat("tensor ", i, " is ", a[i].name, " and ", b[i].name);
    }
    if (a[i].shape != b[i].shape) {
      return absl::StrCat("the shape of ", a[i].name, " is ",
                          ShapeText(a[i].shape), " and ",
                          ShapeText(b[i].shape));
    }
  }
  if (a.size() == b.size()) return "";
  return absl::StrCat("they have ", a.size(), " and ", b.size(), " tensors");
}

class Search {
 public:
  Search(const RecordedRun& a, const RecordedRun& b, const BisectTools& tools)
      : a_(a), b_(b), tools_(tools) {}

  absl::StatusOr<Bisection> Run() {
    found_.job = JobDifferences(a_.job, b_.job);
    found_.environment = EnvironmentDifferences(a_.environment, b_.environment);
    found_.last_a =
        a_.losses.empty() ? a_.start_step : a_.losses.rbegin()->first;
    found_.last_b =
        b_.losses.empty() ? b_.start_step : b_.losses.rbegin()->first;
    found_.models = ModelDifference(a_.parameters, b_.parameters);
    if (!found_.models.empty()) {
      found_.place = {.seen = Seen::kModel, .step = 1};
      return std::move(found_);
    }
    CompareLosses();
    TRIBUTARY_RETURN_IF_ERROR(CompareStates());
    if (found_.steps == 0 && found_.states == 0) return NothingInCommon();
    if (found_.equal()) {
      TRIBUTARY_RETURN_IF_ERROR(CompareFinalWeights());
      return std::move(found_);
    }
    TRIBUTARY_RETURN_IF_ERROR(CompareData());
    TRIBUTARY_RETURN_IF_ERROR(Narrow());
    return std::move(found_);
  }

 private:
  absl::Status NothingInCommon() const {
    const auto steps = [](const RecordedRun& run) {
      return run.losses.empty()
                 ? std::string("no step")
                 : absl::StrCat("steps ", run.losses.begin()->first, " to ",
                                run.losses.rbegin()->first);
    };
    return absl::FailedPreconditionError(absl::StrCat(
        "the runs have no step in common: ", a_.folder, " has recorded ",
        steps(a_), ", ", b_.folder, " ", steps(b_)));
  }

  // Finds the first step whose recorded loss differs.
  void CompareLosses() {
    for (const auto& [step, loss] : a_.losses) {
      const auto other = b_.losses.find(step);
      if (other == b_.losses.end()) continue;
      ++found_.steps;
      if (SameLoss(loss, other->second) || !found_.equal()) continue;
      found_.place = {.seen = Seen::kLoss,
                      .step = step,
                      .loss_a = loss,
                      .loss_b = other->second};
    }
  }

  // Compares checkpoints and weights of equal steps up to the first one that
  // differs. After the first step whose loss differs, a state only serves to
  // name the tensor.
  absl::Status CompareStates() {
    for (const RecordedState& of_a : a_.states) {
      const RecordedState* of_b = b_.StateAfter(of_a.step);
      if (of_b == nullptr || &of_a != a_.StateAfter(of_a.step)) continue;
      TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<TensorDifference> tensors,
                                 DifferentTensors(of_a, *of_b));
      ++found_.states;
      const bool later = !found_.equal() && of_a.step >= found_.place.step;
      if (tensors.empty()) {
        if (!later) found_.equal_up_to = of_a.step;
        continue;
      }
      if (!later) {
        found_.place = {.seen = Seen::kWeights, .step = of_a.step};
      }
      Name(tensors, StateText(of_a), of_a.step, &found_.place);
      return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  // Compares the files of final weights of runs whose other records are equal.
  // A checkpoint of the last step does not cover these files.
  absl::Status CompareFinalWeights() {
    for (const RecordedRun* run : {&a_, &b_}) {
      const RecordedRun& other = run == &a_ ? b_ : a_;
      if (other.final_step != run->final_step &&
          other.StateAfter(run->final_step) == nullptr) {
        continue;  // the runs end at different steps
      }
      TRIBUTARY_ASSIGN_OR_RETURN(const std::optional<ChangedWeights> changed,
                                 FindChangedWeights(*run));
      if (!changed) continue;
      Bisection::Deviation deviation{.changed = changed};
      deviation.place = {.seen = Seen::kWeights, .step = run->final_step};
      Name({changed->tensor}, "the final weights", run->final_step,
           &deviation.place);
      found_.place = deviation.place;
      (run == &a_ ? found_.deviation_a : found_.deviation_b) = deviation;
    }
    const RecordedState* const of_a = a_.FinalWeights();
    const RecordedState* const of_b = b_.FinalWeights();
    if (!found_.equal() || of_a == nullptr || of_b == nullptr ||
        of_a->step != of_b->step ||
        (of_a == a_.StateAfter(of_a->step) &&
         of_b == b_.StateAfter(of_b->step))) {
      return absl::OkStatus();
    }
    TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<TensorDifference> tensors,
                               DifferentTensors(*of_a, *of_b));
    ++found_.states;
    if (tensors.empty()) return absl::OkStatus();
    found_.place = {.seen = Seen::kWeights, .step = of_a->step};
    Name(tensors, StateText(*of_a), of_a->step, &found_.place);
    return absl::OkStatus();
  }

  static void Name(const std::vector<TensorDifference>& tensors,
                   const std::string& where, int64_t step,
                   DifferencePoint* place) {
    place->tensor = tensors[0].name;
    place->elements = tensors[0].elements;
    place->different = tensors[0].different;
    place->where = where;
    place->seen_at = step;
  }

  absl::Status CompareData() {
    const bool may_differ =
        std::any_of(found_.job.begin(), found_.job.end(),
                    [](const JobDifference& difference) {
                      return absl::StartsWith(difference.key, "data.");
                    }) ||
        std::any_of(found_.environment.begin(), found_.environment.end(),
                    [](const EnvironmentDifference& difference) {
                      return difference.kind ==
                             EnvironmentDifference::Kind::kData;
                    });
    if (!may_differ || a_.job.has_program() || b_.job.has_program()) {
      return absl::OkStatus();
    }
    const absl::StatusOr<std::string> sample = tools_.compare_data(a_, b_);
    if (absl::IsCancelled(sample.status())) return sample.status();
    if (!sample.ok()) return absl::OkStatus();  // the files are gone
    found_.sample = json::parse(*sample, nullptr, /*allow_exceptions=*/false);
    if (!found_.sample.is_object()) found_.sample = json::object();
    return absl::OkStatus();
  }

  // Recomputes the steps between the last equal states and the difference.
  absl::Status Narrow() {
    for (const RecordedRun* run : {&a_, &b_}) {
      const absl::Status status = CheckReplayable(*run);
      if (status.ok()) continue;
      found_.not_replayed = std::string(status.message());
      return absl::OkStatus();
    }
    const int64_t first = found_.equal_up_to + 1;
    for (const RecordedRun* run : {&a_, &b_}) {
      const absl::Status status = CheckStartIsLeft(*run, first);
      if (status.ok() || HasJobOfWholeRun(*run)) continue;
      found_.not_replayed = std::string(status.message());
      return absl::OkStatus();
    }
    const int64_t last = found_.place.step;
    const auto of_a = Replay(a_, first, last);
    if (!of_a.ok()) return NotReplayed(of_a.status());
    const auto of_b = Replay(b_, first, last);
    if (!of_b.ok()) return NotReplayed(of_b.status());
    found_.replayed = true;
    TRIBUTARY_ASSIGN_OR_RETURN(found_.deviation_a, Deviates(a_, *of_a, last));
    TRIBUTARY_ASSIGN_OR_RETURN(found_.deviation_b, Deviates(b_, *of_b, last));
    const auto step_of =
        [](const std::optional<Bisection::Deviation>& deviation) {
          return deviation ? deviation->place.step : kNever;
        };
    const DifferencePoint computed = FirstDifference(*of_a, *of_b);
    const int64_t deviates =
        std::min(step_of(found_.deviation_a), step_of(found_.deviation_b));
    if (computed.seen != Seen::kNowhere && computed.step <= deviates) {
      found_.place = computed;
      found_.deviation_a.reset();
      found_.deviation_b.reset();
    }
    return absl::OkStatus();
  }

  // Whether the other run began at the first step and had the same job. Then
  // the steps before this run was resumed were of this job, too.
  bool HasJobOfWholeRun(const RecordedRun& run) const {
    const RecordedRun& other = &run == &a_ ? b_ : a_;
    return other.start_step == 0 &&
           std::none_of(found_.job.begin(), found_.job.end(),
                        [](const JobDifference& difference) {
                          return difference.matters;
                        });
  }

  absl::StatusOr<ReplayedSteps> Replay(const RecordedRun& run, int64_t first,
                                       int64_t last) {
    tools_.note(absl::StrCat("computing steps ", first, " to ", last, " of ",
                             run.folder, " again"));
    return tools_.replay(run, first, last);
  }

  absl::Status NotReplayed(const absl::Status& status) {
    if (absl::IsCancelled(status)) return status;
    found_.not_replayed = std::string(status.message());
    return absl::OkStatus();
  }

  // Whether the run's record differs from its replay, whose last step is
  // `last`.
  absl::StatusOr<std::optional<Bisection::Deviation>> Deviates(
      const RecordedRun& run, const ReplayedSteps& replayed,
      int64_t last) const {
    Bisection::Deviation deviation;
    DifferencePoint& place = deviation.place;
    for (const auto& [step, computed] : replayed.steps) {
      const auto recorded = run.losses.find(step);
      if (recorded == run.losses.end() ||
          SameLoss(recorded->second, computed.loss)) {
        continue;
      }
      place = {.seen = Seen::kLoss,
               .step = step,
               .tensor = found_.place.tensor,
               .elements = found_.place.elements,
               .different = found_.place.different,
               .where = found_.place.where,
               .seen_at = found_.place.seen_at,
               .loss_a = recorded->second,
               .loss_b = computed.loss};
      break;
    }
    if (place.seen == Seen::kNowhere) {
      const RecordedState* state = run.StateAfter(last);
      if (state == nullptr) return std::nullopt;
      TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<TensorDifference> tensors,
                                 DifferentTensors(*state, replayed.after));
      if (tensors.empty()) return std::nullopt;
      place = {.seen = Seen::kWeights, .step = last};
      Name(tensors, StateText(*state), last, &place);
    }
    deviation.here =
        EnvironmentDifferences(run.environment, replayed.environment);
    return deviation;
  }

  // The first difference of two replays. In a step the gradients are computed
  // before the weights change.
  DifferencePoint FirstDifference(const ReplayedSteps& a,
                                  const ReplayedSteps& b) const {
    for (const auto& [step, of_a] : a.steps) {
      const ReplayedStep& of_b = b.steps.at(step);
      for (const bool gradient : {true, false}) {
        DifferencePoint place = FirstTensor(of_a, of_b, gradient);
        if (place.seen == Seen::kNowhere) continue;
        place.step = step;
        return place;
      }
    }
    return {};
  }

  // The first tensor that differs in the model's order, on the first such rank.
  DifferencePoint FirstTensor(const ReplayedStep& a, const ReplayedStep& b,
                              bool gradient) const {
    DifferencePoint place;
    // Ranks that split the batch differently always have different gradients.
    if (gradient && a.ranks.size() != b.ranks.size()) return place;
    size_t first = a_.parameters.size() + 1;
    for (size_t r = 0; r < std::min(a.ranks.size(), b.ranks.size()); ++r) {
      const auto& of_a = a.ranks[r].tensors;
      const auto& of_b = b.ranks[r].tensors;
      for (size_t t = 0; t < std::min(of_a.size(), of_b.size()); ++t) {
        const bool same = gradient
                              ? of_a[t].gradient_crc == of_b[t].gradient_crc
                              : of_a[t].weight_crc == of_b[t].weight_crc;
        const size_t position = PositionOf(of_a[t].name);
        if (same || position >= first) continue;
        first = position;
        place.seen = gradient ? Seen::kGradient : Seen::kWeights;
        place.tensor = of_a[t].name;
        if (gradient) place.rank = static_cast<int>(r);
        place.equal_gradients = !gradient && a.ranks.size() == b.ranks.size();
      }
    }
    return place;
  }

  // A tensor's place in the model's order; the number of tensors if not found.
  size_t PositionOf(const std::string& name) const {
    return static_cast<size_t>(
        std::find_if(a_.parameters.begin(), a_.parameters.end(),
                     [&](const ParameterSpec& p) { return p.name == name; }) -
        a_.parameters.begin());
  }

  const RecordedRun& a_;
  const RecordedRun& b_;
  const BisectTools& tools_;
  Bisection found_;
};

}  // namespace

absl::StatusOr<Bisection> Bisect(const RecordedRun& a, const RecordedRun& b,
                                 const BisectTools& tools) {
  return Search(a, b, tools).Run();
}

}  // namespace tributary
