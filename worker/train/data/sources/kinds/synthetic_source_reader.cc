// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/train/data/readers/synthetic.h"
#include "worker/train/data/sources/source_reader.h"

namespace tributary {
namespace {

// Subtracts the offsets from numbers that float32 holds exactly.
RawData WithOffsets(RawData data, const std::vector<double>& offsets) {
  if (offsets.empty()) return data;
  data.offsets = offsets;
  const std::vector<float> numbers = std::exchange(data.numbers, {});
  for (float number : numbers) data.AppendNumber(number);
  return data;
}

absl::StatusOr<RawData> ReadSyntheticSource(const v1::DataSource& of,
                                            TargetKind kind,
                                            LearnedFromTraining* learned) {
  const v1::SyntheticSource& source = of.synthetic();
  SyntheticOptions options;
  switch (source.kind()) {
    case v1::SyntheticSource::CTR:
      options.kind = SyntheticOptions::Kind::kCtr;
      break;
    case v1::SyntheticSource::LINEAR:
      options.kind = SyntheticOptions::Kind::kLinear;
      break;
    case v1::SyntheticSource::MLP_TEACHER:
      options.kind = SyntheticOptions::Kind::kMlpTeacher;
      break;
    case v1::SyntheticSource::MARKOV_TEXT:
      options.kind = SyntheticOptions::Kind::kMarkovText;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("synthetic: wanted the kind ctr, linear, mlp_teacher or "
                       "markov_text, got ",
                       v1::SyntheticSource::Kind_Name(source.kind())));
  }
  if (source.has_seed()) options.seed = source.seed();
  options.first_row = source.first_row();
  options.rows = source.rows();
  options.length = source.length();
  TRIBUTARY_ASSIGN_OR_RETURN(RawData data, MakeSynthetic(options, kind));
  return WithOffsets(std::move(data), learned->offsets);
}

}  // namespace

void AddSyntheticSourceReader(SourceReaders* readers) {
  static const SourceReader reader = {.read = ReadSyntheticSource};
  readers->Add(v1::DataSource::kSynthetic, &reader);
}

}  // namespace tributary
