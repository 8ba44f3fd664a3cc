// SPDX-License-Identifier: Apache-2.0
#include "common/model_record/model_difference.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

using LayerList = google::protobuf::RepeatedPtrField<v1::LayerSpec>;

const google::protobuf::FieldDescriptor* KindField(const v1::LayerSpec& layer) {
  return layer.GetReflection()->GetOneofFieldDescriptor(
      layer, layer.GetDescriptor()->oneof_decl(0));
}

// "relu", as the job file names it.
std::string FieldName(const v1::LayerSpec& layer) {
  const auto* kind = KindField(layer);
  return kind == nullptr ? "nothing" : std::string(kind->name());
}

// Returns the layers without those that only train.
LayerList EvaluatedLayers(const LayerList& layers) {
  LayerList kept;
  for (const v1::LayerSpec& layer : layers) {
    if (layer.has_dropout()) continue;
    v1::LayerSpec* copy = kept.Add();
    *copy = layer;
    if (!layer.has_residual()) continue;
    *copy->mutable_residual()->mutable_body() =
        EvaluatedLayers(layer.residual().body());
    *copy->mutable_residual()->mutable_shortcut() =
        EvaluatedLayers(layer.residual().shortcut());
  }
  return kept;
}

// The place in `layers` of the layer that has the place `at` in Evaluated.
int PlaceWithDropout(const LayerList& layers, int at) {
  int place = 0;
  for (;; ++place) {
    if (!layers[place].has_dropout() && at-- == 0) return place;
  }
}

const char* OutputText(v1::OutputKind output) {
  switch (output) {
    case v1::OUTPUT_KIND_CLASSES:
      return "the logits of classes";
    case v1::OUTPUT_KIND_BINARY:
      return "the logits of yes or no";
    default:
      return "numbers";
  }
}

const v1::MissingSpec& FillSpecOf(const v1::DataSource& source) {
  return source.csv().missing();
}

bool FillsIn(const v1::MissingSpec& missing) {
  return missing.kind_case() != v1::MissingSpec::KIND_NOT_SET &&
         missing.kind_case() != v1::MissingSpec::kSkip;
}

std::string FillText(const v1::MissingSpec& missing) {
  if (missing.kind_case() == v1::MissingSpec::kConstant) {
    return absl::StrCat(missing.constant());
  }
  return missing.has_mean() ? "the column's mean" : "the column's median";
}

}  // namespace

std::string ModelDifference(const v1::ModelRecord& before,
                            const v1::ModelRecord& now, absl::string_view here,
                            absl::string_view there) {
  if (before.output() != now.output()) {
    return absl::StrCat("the outputs are ", OutputText(now.output()), " in ",
                        here, ", but ", OutputText(before.output()), " in ",
                        there);
  }
  const LayerList was = EvaluatedLayers(before.sequential());
  const LayerList is = EvaluatedLayers(now.sequential());
  for (int i = 0; i < std::min(was.size(), is.size()); ++i) {
    if (was[i].SerializeAsString() == is[i].SerializeAsString()) continue;
    return absl::StrCat("layer ", PlaceWithDropout(now.sequential(), i), " is ",
                        FieldName(is[i]), " in ", here, ", but ",
                        KindField(was[i]) == KindField(is[i])
                            ? "with other settings"
                            : FieldName(was[i]),
                        " in ", there);
  }
  if (was.size() == is.size()) return "";
  return absl::StrCat("the number of layers is ", is.size(), " in ", here,
                      ", but ", was.size(), " in ", there,
                      ", dropout not counted");
}

std::string FillDifference(const v1::DataSource& before,
                           const v1::DataSource& now, absl::string_view here,
                           absl::string_view there) {
  const v1::MissingSpec& was = FillSpecOf(before);
  const v1::MissingSpec& is = FillSpecOf(now);
  const bool constant = was.kind_case() == v1::MissingSpec::kConstant ||
                        is.kind_case() == v1::MissingSpec::kConstant;
  if (!FillsIn(was) || !FillsIn(is) || !constant ||
      FillText(was) == FillText(is)) {
    return "";
  }
  return absl::StrCat("a missing number becomes ", FillText(was), " in ", there,
                      ", but ", FillText(is), " in ", here);
}

}  // namespace tributary
