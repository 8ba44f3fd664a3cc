// SPDX-License-Identifier: Apache-2.0
#include "common/job/initial_tensors.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/layers/model_parameters.h"
#include "common/optimizer/parameter_group.h"
#include "common/status/nearest_name.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

std::string ShapeText(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

int64_t NumStars(absl::string_view pattern) {
  return std::count(pattern.begin(), pattern.end(), '*');
}

// `from` with each * replaced by what it stands for in the pattern.
std::string FillStars(absl::string_view from,
                      const std::vector<std::string_view>& stars) {
  std::string filled;
  size_t next = 0;
  for (const char c : from) {
    if (c == '*') {
      filled.append(stars[next++]);
    } else {
      filled.push_back(c);
    }
  }
  return filled;
}

// A name as an item of a flow list in YAML.
std::string YamlName(absl::string_view name) {
  return absl::StrCat("\"", name, "\"");
}

std::vector<std::string> NamesOf(const ParameterSpecs& specs) {
  std::vector<std::string> names;
  for (const ParameterSpec& spec : specs) names.push_back(spec.name);
  return names;
}

class Matcher {
 public:
  Matcher(const Places& places, const v1::ModelSpec& model,
          const ParameterSpecs& tensors)
      : places_(places),
        model_(model),
        tensors_(tensors),
        parameters_(ModelParameters(model)),
        used_(tensors.size(), false),
        replaced_(tensors.size(), false) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      index_[tensors[i].name] = static_cast<int>(i);
    }
  }

  absl::StatusOr<std::vector<int>> Run() {
    for (int r = 0; r < model_.initialize_rules_size(); ++r) {
      TRIBUTARY_RETURN_IF_ERROR(CheckRule(r));
    }
    std::vector<int> sources;
    for (const ParameterSpec& parameter : parameters_) {
      TRIBUTARY_ASSIGN_OR_RETURN(const int source, SourceOf(parameter));
      if (source != kFromSeed) used_[source] = true;
      sources.push_back(source);
    }
    TRIBUTARY_RETURN_IF_ERROR(CheckUnused());
    return sources;
  }

 private:
  // An error about what the file holds.
  template <typename... Text>
  absl::Status FileError(const Text&... text) const {
    return places_.Error("model.initialize_from",
                         "model.initialize_from: ", model_.initialize_from(),
                         ": ", text...);
  }

  // An error about a field of the job, which its message names first.
  template <typename... Text>
  absl::Status FieldError(const std::string& path, const Text&... text) const {
    return places_.Error(path, path, text...);
  }

  static std::string RulePath(int rule) {
    return absl::StrCat("model.initialize_rules.", rule);
  }

  std::string DidYouMean(const std::string& name,
                         const std::vector<std::string>& names) const {
    const std::string nearest = NearestName(name, names);
    return nearest.empty()
               ? ""
               : absl::StrCat("; did you mean ", Quoted(nearest), "?");
  }

  // Checks a rule by itself and against the model.
  absl::Status CheckRule(int r) const {
    const v1::InitializeRuleSpec& rule = model_.initialize_rules(r);
    const std::string path = RulePath(r);
    if (rule.fresh() && (rule.reshape() || !rule.from().empty())) {
      const char* other = rule.reshape() ? ".reshape" : ".from";
      return FieldError(path + ".fresh", " and ", path, other,
                        " exclude each other; keep one");
    }
    for (int i = 0; i < rule.tensors_size(); ++i) {
      const std::string& pattern = rule.tensors(i);
      const std::string item = absl::StrCat(path, ".tensors.", i);
      if (pattern.empty()) return FieldError(item, " is empty");
      const bool names_one =
          std::any_of(parameters_.begin(), parameters_.end(),
                      [&pattern](const ParameterSpec& parameter) {
                        return MatchesPattern(pattern, parameter.name);
                      });
      if (!names_one) {
        return FieldError(item, ": no tensor of the model has the name ",
                          Quoted(pattern),
                          DidYouMean(pattern, NamesOf(parameters_)));
      }
      const int64_t stars = NumStars(rule.from());
      if (stars > 0 && stars != NumStars(pattern)) {
        return FieldError(path + ".from", " wants as many * as ",
                          Quoted(pattern), " has, or none, got ",
                          Quoted(rule.from()));
      }
    }
    return absl::OkStatus();
  }

  // Returns the first rule that names the parameter, or -1. Sets `stars` to
  // what the rule's stars stand for.
  int RuleOf(const ParameterSpec& parameter,
             std::vector<std::string_view>* stars) const {
    for (int r = 0; r < model_.initialize_rules_size(); ++r) {
      for (const std::string& pattern : model_.initialize_rules(r).tensors()) {
        if (const auto found = StarsOf(pattern, parameter.name)) {
          *stars = *found;
          return r;
        }
      }
    }
    return -1;
  }

  absl::StatusOr<int> SourceOf(const ParameterSpec& parameter) {
    std::vector<std::string_view> stars;
    const int r = RuleOf(parameter, &stars);
    v1::InitializeRuleSpec rule;
    if (r >= 0) rule = model_.initialize_rules(r);
    if (rule.fresh()) {
      if (const auto same = index_.find(parameter.name); same != index_.end()) {
        replaced_[same->second] = true;
      }
      return kFromSeed;
    }
    const std::string name =
        rule.from().empty() ? parameter.name : FillStars(rule.from(), stars);
    const auto found = index_.find(name);
    if (found == index_.end()) return Missing(parameter, r, name);
    const ParameterSpec& tensor = tensors_[found->second];
    if (tensor.shape != parameter.shape &&
        !(rule.reshape() && tensor.size() == parameter.size())) {
      return WrongShape(parameter, r, tensor);
    }
    return found->second;
  }

  // Makes the error for a parameter that wants a tensor `name`, which the file
  // lacks. `rule`: the parameter's rule, or -1.
  absl::Status Missing(const ParameterSpec& parameter, int rule,
                       const std::string& name) const {
    if (rule >= 0) {
      return FieldError(RulePath(rule) + ".from", ": ",
                        model_.initialize_from(), " has no tensor ",
                        Quoted(name), " for ", Quoted(parameter.name),
                        DidYouMean(name, NamesOf(tensors_)));
    }
    ParameterSpecs alike;
    for (const ParameterSpec& tensor : tensors_) {
      if (tensor.shape == parameter.shape) alike.push_back(tensor);
    }
    const std::string nearest = NearestName(name, NamesOf(alike));
    const std::string tensors =
        absl::StrCat("{tensors: ", YamlName(parameter.name));
    return FileError("wants a tensor ", Quoted(name), " of shape ",
                     ShapeText(parameter.shape),
                     ", there is none; give it a rule in "
                     "model.initialize_rules, ",
                     tensors,
                     ", from: ", nearest.empty() ? "NAME" : YamlName(nearest),
                     "} or ", tensors, ", fresh: true}");
  }

  absl::Status WrongShape(const ParameterSpec& parameter, int rule,
                          const ParameterSpec& tensor) const {
    const bool transposed = tensor.shape.size() == 2 &&
                            parameter.shape.size() == 2 &&
                            tensor.shape[0] == parameter.shape[1] &&
                            tensor.shape[1] == parameter.shape[0];
    const char* with =
        rule < 0 ? "; a rule of model.initialize_rules with " : "; ";
    std::string hint = ", its transpose; transpose it in the file";
    if (!transposed) {
      hint = absl::StrCat(with, tensor.size() == parameter.size()
                                    ? "`reshape: true` takes its elements in "
                                      "row-major order"
                                    : "`fresh: true` starts it from the seed");
    }
    const std::string from = tensor.name == parameter.name
                                 ? ""
                                 : absl::StrCat(" from ", Quoted(tensor.name));
    const std::string text =
        absl::StrCat("wants tensor ", Quoted(parameter.name), " of shape ",
                     ShapeText(parameter.shape), from, ", got ",
                     ShapeText(tensor.shape), hint);
    if (rule < 0) return FileError(text);
    return FieldError(RulePath(rule), ": ", model_.initialize_from(), ": ",
                      text);
  }

  // Checks that every tensor of the file has a use or is named as unused.
  absl::Status CheckUnused() const {
    std::vector<bool> named(tensors_.size(), false);
    for (int i = 0; i < model_.initialize_unused_size(); ++i) {
      TRIBUTARY_RETURN_IF_ERROR(MarkUnused(i, &named));
    }
    std::string first;
    int others = -1;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (used_[t] || replaced_[t] || named[t]) continue;
      if (++others == 0) first = tensors_[t].name;
    }
    if (others < 0) return absl::OkStatus();
    return FileError(
        "has a tensor ", Quoted(first),
        others == 0 ? "" : absl::StrCat(" (and ", others, " more)"),
        " that the model lacks; name it in model.initialize_unused, or as "
        "`from` in a rule of model.initialize_rules");
  }

  absl::Status MarkUnused(int i, std::vector<bool>* named) const {
    const std::string& pattern = model_.initialize_unused(i);
    const std::string path = absl::StrCat("model.initialize_unused.", i);
    if (const auto exact = index_.find(pattern);
        exact != index_.end() && used_[exact->second]) {
      return FieldError(path, ": the model takes the tensor ", Quoted(pattern));
    }
    bool names_one = false;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (!MatchesPattern(pattern, tensors_[t].name)) continue;
      (*named)[t] = true;
      names_one = true;
    }
    if (names_one) return absl::OkStatus();
    return FieldError(path, ": ", model_.initialize_from(),
                      " has no tensor of the name ", Quoted(pattern),
                      DidYouMean(pattern, NamesOf(tensors_)));
  }

  const Places& places_;
  const v1::ModelSpec& model_;
  const ParameterSpecs& tensors_;
  const ParameterSpecs parameters_;
  std::map<std::string, int> index_;  // of tensors_ by name
  std::vector<bool> used_;            // a parameter starts from this tensor
  std::vector<bool> replaced_;  // the parameter of its name starts from seed
};

}  // namespace

absl::StatusOr<std::vector<int>> MatchInitialTensors(
    const Places& places, const v1::ModelSpec& model,
    const ParameterSpecs& tensors) {
  return Matcher(places, model, tensors).Run();
}

}  // namespace tributary
