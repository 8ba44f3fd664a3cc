// SPDX-License-Identifier: Apache-2.0
#include "common/job/sources/source_kind.h"
#include "common/job/sources/synthetic_sizes.h"

namespace tributary {
namespace {

class SyntheticSourceKind : public SourceKind {
 public:
  int64_t SequenceLength(const v1::DataSource& source) const override {
    return source.synthetic().length();
  }

  int64_t SampleWidth(const v1::DataSource& source) const override {
    switch (source.synthetic().kind()) {
      case v1::SyntheticSource::CTR:
        return kCtrNumbers + kCtrTables;
      case v1::SyntheticSource::LINEAR:
        return kLinearInputs;
      case v1::SyntheticSource::MLP_TEACHER:
        return kMlpTeacherInputs;
      case v1::SyntheticSource::MARKOV_TEXT:  // the two tokens before, one-hot
        return 2 * kMarkovTokens;
      default:
        return 0;
    }
  }

  absl::Status Validate(const Places& places, const std::string& path,
                        const v1::DataSource& source) const override {
    const v1::SyntheticSource& synthetic = source.synthetic();
    if (synthetic.length() == 0 ||
        synthetic.kind() == v1::SyntheticSource::MARKOV_TEXT) {
      return absl::OkStatus();
    }
    return places.Error(path + ".length", path,
                        ".length belongs to markov_text");
  }
};

}  // namespace

void AddSyntheticSource(SourceKinds* kinds) {
  static const SyntheticSourceKind synthetic;
  kinds->Add(v1::DataSource::kSynthetic, &synthetic);
}

}  // namespace tributary
