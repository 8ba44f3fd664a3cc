// SPDX-License-Identifier: Apache-2.0
#include "common/job/sources/source_kind.h"

namespace tributary {
namespace {

class TextSourceKind : public SourceKind {
 public:
  std::vector<Files> FilesOf(v1::DataSource* source) const override {
    return {{"path", source->mutable_text()->mutable_path()}};
  }

  int64_t SequenceLength(const v1::DataSource& source) const override {
    return source.text().length();
  }

  std::vector<std::string> Inherited() const override {
    return {"path", "tokens", "length"};
  }

  // By default the samples of a text do not overlap.
  void Resolve(v1::DataSource* source) const override {
    v1::TextSource* text = source->mutable_text();
    if (text->has_stride() || text->length() == 0) return;
    text->set_stride(text->length());
  }

  absl::Status Validate(const Places& places, const std::string& path,
                        const v1::DataSource& source) const override {
    const v1::TextSource& text = source.text();
    if (text.begin() < text.end()) return absl::OkStatus();
    return places.Error(path + ".end", path, ".end must be above begin, ",
                        text.begin(), ", got ", text.end());
  }
};

}  // namespace

void AddTextSource(SourceKinds* kinds) {
  static const TextSourceKind text;
  kinds->Add(v1::DataSource::kText, &text);
}

}  // namespace tributary
