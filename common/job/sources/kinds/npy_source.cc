// SPDX-License-Identifier: Apache-2.0
#include "common/job/sources/source_kind.h"

namespace tributary {
namespace {

class NpySourceKind : public SourceKind {
 public:
  std::vector<Files> FilesOf(v1::DataSource* source) const override {
    return {{"features", source->mutable_npy()->mutable_features()},
            {"labels", source->mutable_npy()->mutable_labels()}};
  }
};

}  // namespace

void AddNpySource(SourceKinds* kinds) {
  static const NpySourceKind npy;
  kinds->Add(v1::DataSource::kNpy, &npy);
}

}  // namespace tributary
