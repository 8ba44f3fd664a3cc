// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/train/data/readers/input_files.h"
#include "worker/train/data/readers/text_reader.h"
#include "worker/train/data/sources/source_reader.h"
#include "worker/train/data/stream/stored_text.h"

namespace tributary {
namespace {

absl::StatusOr<TextOptions> TextOptionsOf(const v1::TextSource& source,
                                          TargetKind kind) {
  if (kind != TargetKind::kClass) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.path(0), ": the targets of a text are classes; ",
                     "wanted the loss cross_entropy"));
  }
  TextOptions options;
  options.bytes = source.tokens() == v1::TextSource::BYTES;
  options.length = source.length();
  options.stride = source.has_stride() ? source.stride() : source.length();
  options.begin = source.begin();
  options.end = source.has_end() ? source.end() : 1;
  options.range = {source.first_row(), source.rows()};
  if (options.length < 1 || options.stride < 1 || options.begin < 0 ||
      options.end > 1 || !(options.begin < options.end)) {
    return absl::InvalidArgumentError(absl::StrCat(
        source.path(0), ": wanted length and stride from 1 and a part within ",
        "0 and 1, got length ", options.length, ", stride ", options.stride,
        ", begin ", options.begin, ", end ", options.end));
  }
  return options;
}

absl::StatusOr<RawData> ReadTextSource(const v1::DataSource& of,
                                       TargetKind kind,
                                       LearnedFromTraining* learned) {
  TRIBUTARY_ASSIGN_OR_RETURN(const TextOptions options,
                             TextOptionsOf(of.text(), kind));
  return ReadText(InputFiles::Of(of.text().path()), options,
                  &learned->vocabulary);
}

absl::StatusOr<StoredRows::Columns> StoreTextSource(
    const v1::DataSource& of, TargetKind kind, LearnedFromTraining* learned) {
  TRIBUTARY_ASSIGN_OR_RETURN(const TextOptions options,
                             TextOptionsOf(of.text(), kind));
  return StoreText(InputFiles::Of(of.text().path()), options,
                   &learned->vocabulary);
}

}  // namespace

void AddTextSourceReader(SourceReaders* readers) {
  static const SourceReader reader = {.read = ReadTextSource,
                                      .store = StoreTextSource};
  readers->Add(v1::DataSource::kText, &reader);
}

}  // namespace tributary
