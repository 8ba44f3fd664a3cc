// SPDX-License-Identifier: Apache-2.0
#include "worker/data/stream/stored_arrays.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/about_field.h"
#include "common/status/status_macros.h"
#include "worker/data/readers/idx_reader.h"
#include "worker/data/stream/scratch_file.h"

namespace tributary {
namespace {

using ReadHeader = std::function<absl::StatusOr<NpyHeader>(InputFile* file)>;

// Some files that are read as one array. The first dimension counts the rows.
class ArrayFiles {
 public:
  ArrayFiles(const InputFiles& files, ReadHeader read_header)
      : files_(files), read_header_(std::move(read_header)) {}

  // Reads all headers. InvalidArgument when the files' rows differ.
  absl::Status Open();

  const NpyHeader& header(size_t file) const { return headers_[file]; }
  int64_t rows(size_t file) const { return headers_[file].shape[0]; }
  int64_t row_size() const {
    return NumElements(headers_[0].shape) / headers_[0].shape[0];
  }
  NpyType type() const { return headers_[0].type; }

  // The rows of `range` of all files together.
  absl::StatusOr<StoredRows::Array> Store(const RowRange& range) const;

 private:
  absl::Status StoreFile(size_t file, const RowRange& range,
                         StoredRecords* records) const;

  const InputFiles& files_;
  const ReadHeader read_header_;
  std::vector<NpyHeader> headers_;
};

absl::Status ArrayFiles::Open() {
  for (size_t i = 0; i < files_.size(); ++i) {
    TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                               files_.Open(i));
    TRIBUTARY_ASSIGN_OR_RETURN(const NpyHeader header,
                               read_header_(file.get()));
    TRIBUTARY_RETURN_IF_ERROR(file->ExpectBacked(
        NumElements(header.shape) * NpyTypeSize(header.type), "rows"));
    headers_.push_back(header);
    Shape wanted = headers_[0].shape, got = header.shape;
    wanted[0] = got[0] = 0;
    if (got != wanted || header.type != type()) {
      wanted.erase(wanted.begin());
      got.erase(got.begin());
      return absl::InvalidArgumentError(absl::StrCat(
          file->name(), ": rows are ", ShapeText(got), ", but those of ",
          files_.name(), " are ", ShapeText(wanted),
          header.type != type() ? ", of another type" : ""));
    }
  }
  return absl::OkStatus();
}

absl::Status ArrayFiles::StoreFile(size_t number, const RowRange& range,
                                   StoredRecords* records) const {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                             files_.Open(number));
  TRIBUTARY_RETURN_IF_ERROR(read_header_(file.get()).status());
  const int64_t bytes = records->record_bytes();
  const bool to_end = range.first + range.count == rows(number);
  if (!file->packed()) {
    TRIBUTARY_ASSIGN_OR_RETURN(std::shared_ptr<const RandomAccessFile> stored,
                               RandomAccessFile::Open(files_.name(number)));
    TRIBUTARY_ASSIGN_OR_RETURN(const RandomAccessFile::Stamp stamp,
                               stored->ReadStamp());
    const int64_t follow = stamp.size - file->offset();
    if (to_end && follow != rows(number) * bytes) {
      return file->Error(absl::StrCat("the header announces ", rows(number),
                                      " rows of ", bytes, " bytes, but ",
                                      follow, " bytes follow"));
    }
    records->Append(std::move(stored), file->offset() + range.first * bytes,
                    range.count, range.first);
    return absl::OkStatus();
  }
  TRIBUTARY_ASSIGN_OR_RETURN(ScratchFile scratch,
                             ScratchFile::Create(files_.name(number)));
  TRIBUTARY_RETURN_IF_ERROR(file->Skip(range.first * bytes, "rows"));
  std::vector<uint8_t> piece;
  for (int64_t left = range.count * bytes; left > 0;) {
    piece.resize(std::min<int64_t>(left, 1 << 20));
    TRIBUTARY_RETURN_IF_ERROR(
        file->ReadExactly(piece.size(), piece.data(), "rows"));
    TRIBUTARY_RETURN_IF_ERROR(scratch.Append(piece.data(), piece.size()));
    left -= static_cast<int64_t>(piece.size());
  }
  if (to_end) TRIBUTARY_RETURN_IF_ERROR(file->ExpectEnd());
  TRIBUTARY_ASSIGN_OR_RETURN(std::shared_ptr<const RandomAccessFile> stored,
                             scratch.Finish());
  records->Append(std::move(stored), 0, range.count, range.first);
  return absl::OkStatus();
}

absl::StatusOr<StoredRows::Array> ArrayFiles::Store(
    const RowRange& range) const {
  StoredRows::Array array{
      .file =
          StoredRecords(row_size() * static_cast<int64_t>(NpyTypeSize(type()))),
      .type = type()};
  int64_t first = 0;  // of the file, among all rows
  for (size_t i = 0; i < files_.size(); ++i) {
    const int64_t begin = std::max(range.first, first);
    const int64_t end = std::min(range.first + range.count, first + rows(i));
    if (begin < end) {
      TRIBUTARY_RETURN_IF_ERROR(
          StoreFile(i, {begin - first, end - begin}, &array.file));
    }
    first += rows(i);
  }
  return array;
}

// Samples, and their targets in files of their own.
absl::StatusOr<StoredRows::Columns> StorePairs(ArrayFiles samples,
                                               ArrayFiles labels,
                                               const InputFiles& sample_files,
                                               const InputFiles& label_files,
                                               const RowRange& range) {
  if (sample_files.size() != label_files.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        sample_files.name(), ": wanted one file of labels for each of the ",
        sample_files.size(), " files, got ", label_files.size()));
  }
  TRIBUTARY_RETURN_IF_ERROR(samples.Open());
  TRIBUTARY_RETURN_IF_ERROR(AboutField(labels.Open(), "labels"));
  int64_t all = 0;
  for (size_t i = 0; i < sample_files.size(); ++i) {
    if (samples.rows(i) != labels.rows(i)) {
      return absl::InvalidArgumentError(absl::StrCat(
          sample_files.name(i), " holds ", samples.rows(i), " rows, but ",
          label_files.name(i), " holds ", labels.rows(i)));
    }
    all += samples.rows(i);
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const RowRange rows,
                             ResolveRange(range, all, sample_files.name()));
  StoredRows::Columns columns;
  columns.layout.name = sample_files.name();
  const Shape& shape = samples.header(0).shape;
  columns.layout.feature_shape.assign(shape.begin() + 1, shape.end());
  if (columns.layout.feature_shape.empty()) columns.layout.feature_shape = {1};
  columns.layout.numeric_width = samples.row_size();
  columns.layout.targets.width = labels.row_size();
  columns.layout.targets.name = label_files.name();
  TRIBUTARY_ASSIGN_OR_RETURN(columns.features, samples.Store(rows));
  TRIBUTARY_ASSIGN_OR_RETURN(columns.targets,
                             AboutField(labels.Store(rows), "labels"));
  return columns;
}

}  // namespace

absl::StatusOr<StoredRows::Columns> StoreIdx(const InputFiles& images,
                                             const InputFiles& labels,
                                             const RowRange& range,
                                             TargetKind kind) {
  const auto header = [](int least, int most) {
    return [least, most](InputFile* file) -> absl::StatusOr<NpyHeader> {
      TRIBUTARY_ASSIGN_OR_RETURN(Shape extents,
                                 ReadIdxHeader(file, least, most));
      return NpyHeader{.type = NpyType::kUint8, .shape = std::move(extents)};
    };
  };
  TRIBUTARY_ASSIGN_OR_RETURN(
      StoredRows::Columns columns,
      StorePairs(ArrayFiles(images, header(2, 4)),
                 ArrayFiles(labels, header(1, 1)), images, labels, range));
  columns.layout.byte_divisor = 255;
  columns.layout.targets.kind = kind;
  return columns;
}

absl::StatusOr<StoredRows::Columns> StoreNpy(const InputFiles& features,
                                             const InputFiles& labels,
                                             const RowRange& range,
                                             TargetKind kind,
                                             std::vector<double> offsets) {
  const auto labels_header =
      [kind](InputFile* file) -> absl::StatusOr<NpyHeader> {
    TRIBUTARY_ASSIGN_OR_RETURN(const NpyHeader header, ReadNpyHeader(file));
    const bool wide = header.shape.size() == 2 && kind != TargetKind::kClass;
    if (NumElements(header.shape) == header.shape[0] || wide) return header;
    return absl::InvalidArgumentError(
        absl::StrCat(file->name(), ": wanted labels of shape [rows], got ",
                     ShapeText(header.shape)));
  };
  TRIBUTARY_ASSIGN_OR_RETURN(
      StoredRows::Columns columns,
      StorePairs(ArrayFiles(features, ReadNpyHeader),
                 ArrayFiles(labels, labels_header), features, labels, range));
  columns.layout.offsets = std::move(offsets);
  columns.layout.targets.kind = kind;
  return columns;
}

}  // namespace tributary
