// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/bisect_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tributary {
namespace {

using Json = nlohmann::ordered_json;
using Kind = EnvironmentDifference::Kind;
using DifferencePoint = Bisection::DifferencePoint;
using Seen = Bisection::Seen;

// Something that differs between the runs, as a clause without a subject.
struct Cause {
  std::string kind;  // "job", "data", "version" ... or "fault"
  std::string what;
  std::string a;
  std::string b;
  std::string text;  // "training.loss is a and b"
};

const char* SeenName(Seen seen) {
  switch (seen) {
    case Seen::kNowhere:
      return "nowhere";
    case Seen::kModel:
      return "model";
    case Seen::kLoss:
      return "loss";
    case Seen::kGradient:
      return "gradient";
    case Seen::kWeights:
      return "weights";
  }
  return "unknown";
}

std::string OrUnset(const std::string& value) {
  return value.empty() ? "not set" : value;
}

Cause CauseOf(const JobDifference& difference) {
  return {"job", difference.key, difference.a, difference.b,
          absl::StrCat(difference.key, " is ", OrUnset(difference.a), " and ",
                       OrUnset(difference.b))};
}

Cause CauseOf(const EnvironmentDifference& difference) {
  return {KindName(difference.kind), difference.what, difference.a,
          difference.b,
          absl::StrCat(difference.what, " is ", difference.a, " and ",
                       difference.b)};
}

// "the training data differ first in row 17, column 3: 0.5 and 0.75".
Cause CauseOfSample(const nlohmann::json& sample) {
  const std::string name = sample.value("set", "train");
  const std::string set =
      absl::StrCat("the ", name == "train" ? "training" : name, " data");
  if (!sample.contains("row")) {
    return {"data", set, "", "",
            absl::StrCat(set, " differ: ", sample.value("what", ""))};
  }
  const auto column = sample.value("column", int64_t{0});
  const std::string a = sample["a"].dump(), b = sample["b"].dump();
  return {"data", set, a, b,
          absl::StrCat(set, " differ first in row ",
                       sample.value("row", int64_t{0}),
                       column < 0 ? std::string(", in the target")
                                  : absl::StrCat(", column ", column),
                       ": ", a, " and ", b)};
}

// The settings that make two jobs compute other bits on one machine.
std::vector<Cause> CausesOfJobs(const Bisection& found) {
  std::vector<Cause> causes;
  const bool sample = found.sample.is_object() && found.sample.contains("set");
  for (const JobDifference& difference : found.job) {
    if (difference.matters && !difference.names_data) {
      causes.push_back(CauseOf(difference));
    }
  }
  if (sample) causes.push_back(CauseOfSample(found.sample));
  for (const EnvironmentDifference& difference : found.environment) {
    if ((difference.kind == Kind::kData && !sample) ||
        difference.kind == Kind::kInitialWeights) {
      causes.push_back(CauseOf(difference));
    }
  }
  return causes;
}

std::vector<Cause> CausesOf(
    const std::vector<EnvironmentDifference>& differences) {
  std::vector<Cause> causes;
  for (const EnvironmentDifference& difference : differences) {
    if (difference.matters()) causes.push_back(CauseOf(difference));
  }
  return causes;
}

std::vector<Cause> AllCauses(const Bisection& found) {
  if (found.equal()) return {};
  std::vector<Cause> changed;
  for (const auto* deviation : {&found.deviation_a, &found.deviation_b}) {
    if (!*deviation || !(*deviation)->changed) continue;
    changed.push_back({"file", (*deviation)->changed->path, "", "",
                       "a change of the file or a fault of the disk"});
  }
  if (!changed.empty()) return changed;
  const bool both = found.deviation_a && found.deviation_b;
  if (!both && (found.deviation_a || found.deviation_b)) {
    const auto& one =
        found.deviation_a ? *found.deviation_a : *found.deviation_b;
    std::vector<Cause> causes = CausesOf(one.here);
    if (causes.empty()) {
      causes.push_back({"fault", "", "", "",
                        "a fault of memory or disk, or a program that is not "
                        "deterministic"});
    }
    return causes;
  }
  std::vector<Cause> causes = CausesOfJobs(found);
  if (found.replayed && !both) return causes;
  for (const EnvironmentDifference& difference : found.environment) {
    const bool told = difference.kind == Kind::kData ||
                      difference.kind == Kind::kInitialWeights;
    if (difference.matters() && !told) causes.push_back(CauseOf(difference));
  }
  return causes;
}

std::string Join(const std::vector<std::string>& clauses) {
  return absl::StrJoin(clauses, "; ");
}

std::string Join(const std::vector<Cause>& causes) {
  std::vector<std::string> texts;
  for (const Cause& cause : causes) texts.push_back(cause.text);
  return Join(texts);
}

// "tensor 0.weight (1 of 64 elements)".
std::string TensorText(const DifferencePoint& place) {
  std::string text = absl::StrCat("tensor ", place.tensor);
  if (place.elements > 0) {
    absl::StrAppend(&text, " (", place.different, " of ", place.elements,
                    " elements)");
  }
  return text;
}

std::string WhereText(const DifferencePoint& place) {
  if (place.tensor.empty()) return "";
  return absl::StrCat(", and in ", place.where, " ", TensorText(place),
                      " is the first that differs");
}

// The difference in the first step, as a clause.
std::string PlaceText(const DifferencePoint& place) {
  switch (place.seen) {
    case Seen::kGradient:
      return absl::StrCat("the gradients of the step differ, first that of ",
                          TensorText(place), ", on rank ", place.rank);
    case Seen::kWeights:
      if (place.where.empty()) {
        return absl::StrCat(
            place.equal_gradients ? "its gradients are equal, and " : "",
            "the weights after it differ, first ", TensorText(place));
      }
      return absl::StrCat("in ", place.where, " ", TensorText(place),
                          " is the first that differs");
    case Seen::kLoss:
      return absl::StrCat("its loss is ", LossText(place.loss_a), " and ",
                          LossText(place.loss_b), WhereText(place));
    default:
      return "";
  }
}

std::string EqualText(const Bisection& found, const RecordedRun& a,
                      const RecordedRun& b) {
  std::string text =
      absl::StrCat(a.folder, " and ", b.folder, " are equal in all ",
                   found.steps, " steps that both have recorded");
  if (found.states > 0) {
    absl::StrAppend(&text, ", and in ", found.states,
                    found.states == 1 ? " checkpoint or file of weights"
                                      : " checkpoints and files of weights");
  }
  absl::StrAppend(&text, ".");
  if (found.last_a != found.last_b) {
    absl::StrAppend(&text, " The last step of ", a.folder, " is ", found.last_a,
                    ", that of ", b.folder, " ", found.last_b, ".");
  }
  std::vector<std::string> others;
  for (const JobDifference& difference : found.job) {
    others.push_back(CauseOf(difference).text);
  }
  for (const EnvironmentDifference& difference : found.environment) {
    others.push_back(CauseOf(difference).text);
  }
  if (!others.empty()) {
    absl::StrAppend(&text, " Without effect on these steps: ", Join(others),
                    ".");
  }
  return text;
}

// Describes a run whose record differs from its job's replay, next to a run
// whose record does not differ.
std::string DeviationText(const Bisection::Deviation& deviation,
                          const RecordedRun& run, const RecordedRun& other) {
  const DifferencePoint& place = deviation.place;
  std::string text = absl::StrCat(
      run.folder, " differs from what its own job gives from step ", place.step,
      " on: ");
  if (place.seen == Seen::kLoss) {
    absl::StrAppend(&text, "its loss is recorded as ", LossText(place.loss_a),
                    " and computed again as ", LossText(place.loss_b),
                    WhereText(place));
  } else {
    absl::StrAppend(&text, PlaceText(place));
  }
  absl::StrAppend(&text, ". ", other.folder,
                  " has recorded what its job gives. ");
  const std::vector<Cause> causes = CausesOf(deviation.here);
  if (!causes.empty()) {
    return absl::StrCat(text, "Cause, in ", run.folder,
                        " and now: ", Join(causes), ".");
  }
  absl::StrAppend(&text,
                  run.environment.empty()
                      ? "It has no environment.json, so that its versions and "
                        "data are unknown; if they are"
                      : "Job, data, versions and processor are",
                  " equal");
  absl::StrAppend(&text, run.environment.empty() ? ", the" : ": the",
                  " cause is a fault of memory or disk, or a program that is "
                  "not deterministic.");
  if (run.start_step > 0 && place.step <= run.start_step + 1) {
    absl::StrAppend(&text, " The run was resumed after step ", run.start_step,
                    ".");
  }
  return text;
}

// Describes a file of final weights that differs from what the run has written.
std::string ChangedText(const Bisection::Deviation& deviation) {
  const ChangedWeights& changed = *deviation.changed;
  std::string text =
      absl::StrCat(changed.path,
                   " was changed after the run: ", ChecksumsText(changed), ".");
  if (!changed.tensor.name.empty()) {
    absl::StrAppend(&text, " Its ", TensorText(deviation.place),
                    " is the first that differs from the checkpoint of step ",
                    deviation.place.step, ".");
  }
  return text;
}

// Describes runs that differ only in a file of final weights.
std::string ChangedTexts(const Bisection& found) {
  std::vector<std::string> texts;
  for (const auto* deviation : {&found.deviation_a, &found.deviation_b}) {
    if (*deviation && (*deviation)->changed) {
      texts.push_back(ChangedText(**deviation));
    }
  }
  return absl::StrJoin(texts, " ");
}

std::string DifferentText(const Bisection& found, const RecordedRun& a,
                          const RecordedRun& b) {
  if (found.place.seen == Seen::kModel) {
    return absl::StrCat("The models of ", a.folder, " and ", b.folder,
                        " differ: ", found.models,
                        ". So no step of the two can be compared.");
  }
  if (const std::string changed = ChangedTexts(found); !changed.empty()) {
    return absl::StrCat(changed, " The losses and checkpoints of ", a.folder,
                        " and ", b.folder, " are equal.");
  }
  if (found.deviation_a && !found.deviation_b) {
    return DeviationText(*found.deviation_a, a, b);
  }
  if (found.deviation_b && !found.deviation_a) {
    return DeviationText(*found.deviation_b, b, a);
  }
  std::string text =
      absl::StrCat(a.folder, " and ", b.folder, " differ from step ",
                   found.place.step, " on: ", PlaceText(found.place), ". ");
  const std::vector<Cause> causes = AllCauses(found);
  if (!causes.empty()) {
    absl::StrAppend(&text, "Cause: ", Join(causes), ".");
  } else {
    absl::StrAppend(
        &text,
        "No difference of job, data, versions or processor is recorded.");
  }
  if (found.deviation_a && found.deviation_b) {
    absl::StrAppend(&text,
                    " Neither has recorded what its job gives here and now, so "
                    "the step is that of the records.");
    const std::vector<Cause> here = CausesOf(found.deviation_a->here);
    if (!here.empty()) {
      absl::StrAppend(&text, " In ", a.folder, " and now: ", Join(here), ".");
    }
  }
  if (!found.not_replayed.empty()) {
    absl::StrAppend(&text,
                    " The steps were not computed again, so the first "
                    "difference may be earlier: ",
                    found.not_replayed,
                    absl::EndsWith(found.not_replayed, "?") ? "" : ".");
  }
  return text;
}

const DifferencePoint& ShownPlace(const Bisection& found) {
  if (found.deviation_a && !found.deviation_b) return found.deviation_a->place;
  if (found.deviation_b && !found.deviation_a) return found.deviation_b->place;
  return found.place;
}

}  // namespace

std::string BisectionText(const Bisection& found, const RecordedRun& a,
                          const RecordedRun& b) {
  return found.equal() ? EqualText(found, a, b) : DifferentText(found, a, b);
}

std::string BisectionJson(const Bisection& found, const RecordedRun& a,
                          const RecordedRun& b) {
  const DifferencePoint& place = ShownPlace(found);
  Json json = {{"run_a", a.folder},
               {"run_b", b.folder},
               {"equal", found.equal()},
               {"steps_compared", found.steps},
               {"last_steps", {found.last_a, found.last_b}},
               {"states_compared", found.states},
               {"equal_up_to", found.equal_up_to}};
  if (!found.equal()) {
    json["step"] = place.step;
    json["seen"] = SeenName(place.seen);
    json["tensor"] = place.tensor.empty() ? Json() : Json(place.tensor);
    json["rank"] = place.rank < 0 ? Json() : Json(place.rank);
    json["elements"] = place.elements;
    json["different_elements"] = place.different;
    json["recomputed"] = found.replayed;
    Json deviating = Json::array();
    if (found.deviation_a) deviating.push_back(a.folder);
    if (found.deviation_b) deviating.push_back(b.folder);
    json["not_what_its_job_gives"] = deviating;
    if (!found.sample.empty()) json["sample"] = found.sample;
  }
  json["causes"] = Json::array();
  for (const Cause& cause : AllCauses(found)) {
    json["causes"].push_back({{"kind", cause.kind},
                              {"what", cause.what},
                              {"a", cause.a},
                              {"b", cause.b}});
  }
  json["text"] = BisectionText(found, a, b);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tributary
