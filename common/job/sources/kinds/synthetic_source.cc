// SPDX-License-Identifier: Apache-2.0
#include "common/job/sources/source_kind.h"

namespace tributary {
namespace {

class SyntheticSourceKind : public SourceKind {
 public:
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
