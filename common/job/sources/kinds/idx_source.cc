// SPDX-License-Identifier: Apache-2.0
#include "common/job/sources/source_kind.h"

namespace tributary {
namespace {

class IdxSourceKind : public SourceKind {
 public:
  std::vector<Files> FilesOf(v1::DataSource* source) const override {
    return {{"images", source->mutable_idx()->mutable_images()},
            {"labels", source->mutable_idx()->mutable_labels()}};
  }
};

}  // namespace

void AddIdxSource(SourceKinds* kinds) {
  static const IdxSourceKind idx;
  kinds->Add(v1::DataSource::kIdx, &idx);
}

}  // namespace tributary
