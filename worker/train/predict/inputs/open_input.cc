// SPDX-License-Identifier: Apache-2.0
#include "worker/train/predict/inputs/input_rows.h"

namespace tributary {

absl::StatusOr<std::unique_ptr<InputRows>> OpenInput(
    const v1::Preprocessing& preprocessing, const InputOptions& options) {
  if (preprocessing.has_text()) return OpenTextInput(preprocessing, options);
  if (!preprocessing.has_csv()) return OpenArrayInput(preprocessing, options);
  return options.more_paths.empty() ? OpenCsvInput(preprocessing, options)
                                    : OpenChainedInput(preprocessing, options);
}

std::vector<double> OffsetsOf(const v1::Preprocessing& preprocessing) {
  const auto& offsets = preprocessing.numeric().offset();
  return {offsets.begin(), offsets.end()};
}

Targets EmptyTargets(const v1::Preprocessing& preprocessing,
                     const InputOptions& options) {
  Targets targets;
  // Without labels, rows have targets of width 0: Dataset::Gather copies none.
  targets.kind = options.labels ? options.kind : TargetKind::kReal;
  targets.width = options.labels ? preprocessing.target_width() : 0;
  targets.class_names = {preprocessing.class_names().begin(),
                         preprocessing.class_names().end()};
  return targets;
}

}  // namespace tributary
