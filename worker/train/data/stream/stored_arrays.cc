// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/stream/stored_arrays.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/about_field.h"
#include "common/status/status_macros.h"
#include "worker/train/data/readers/idx_header.h"
#include "worker/train/data/readers/npy_header.h"
#include "worker/train/data/stream/scratch_file.h"
#include "worker/train/data/stream/sequential_file.h"

namespace tributary {
namespace {

// A file that has been read up to the first byte of its data.
struct OpenedArray {
  std::unique_ptr<InputFile> file;
  NpyHeader header;
};
using OpenFile = std::function<absl::StatusOr<OpenedArray>(
    const InputFiles& files, size_t number)>;

// Some files that are read as one array. The first dimension counts the rows.
class Array {
 public:
  Array(const InputFiles& files, OpenFile open)
      : files_(files), open_(std::move(open)) {}

  // Reads all headers. InvalidArgument when the files' rows differ.
  absl::Status ReadHeaders();

  const Shape& shape(size_t file) const { return headers_[file].shape; }
  int64_t rows(size_t file) const { return shape(file)[0]; }
  int64_t row_size() const { return NumElements(shape(0)) / rows(0); }

  // The rows of `range` of all files together.
  absl::StatusOr<StoredRecords> Records(const RowRange& range,
                                        ReadOrder order) const;

 private:
  absl::Status AddFile(size_t number, const RowRange& range, ReadOrder order,
                       StoredRecords* records) const;
  // AddPlain and AddUnpacked are the two ways to read rows at any place.
  absl::Status AddPlain(const OpenedArray& opened, size_t number,
                        const RowRange& range, StoredRecords* records) const;
  absl::Status AddUnpacked(const OpenedArray& opened, const RowRange& range,
                           StoredRecords* records) const;

  const InputFiles& files_;
  const OpenFile open_;
  std::vector<NpyHeader> headers_;
};

int64_t DataBytes(const NpyHeader& header) {
  return NumElements(header.shape) *
         static_cast<int64_t>(NpyTypeSize(header.type));
}
int64_t RowBytes(const NpyHeader& header) {
  return DataBytes(header) / header.shape[0];
}

absl::Status Array::ReadHeaders() {
  for (size_t i = 0; i < files_.size(); ++i) {
    TRIBUTARY_ASSIGN_OR_RETURN(const OpenedArray opened, open_(files_, i));
    TRIBUTARY_RETURN_IF_ERROR(
        opened.file->ExpectBacked(DataBytes(opened.header), "rows"));
    headers_.push_back(opened.header);
    const Shape wanted(shape(0).begin() + 1, shape(0).end());
    const Shape got(shape(i).begin() + 1, shape(i).end());
    if (got == wanted) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        files_.name(i), ": rows are ", ShapeText(got), ", but those of ",
        files_.name(), " are ", ShapeText(wanted)));
  }
  return absl::OkStatus();
}

absl::Status Array::AddPlain(const OpenedArray& opened, size_t number,
                             const RowRange& range,
                             StoredRecords* records) const {
  const int64_t row_bytes = RowBytes(opened.header);
  TRIBUTARY_ASSIGN_OR_RETURN(std::shared_ptr<const DiskFile> stored,
                             DiskFile::Open(files_.name(number)));
  TRIBUTARY_ASSIGN_OR_RETURN(const RandomAccessFile::Stamp stamp,
                             stored->ReadStamp());
  const int64_t follow = stamp.size - opened.file->offset();
  if (range.first + range.count == rows(number) &&
      follow != DataBytes(opened.header)) {
    return opened.file->Error(
        absl::StrCat("the header announces ", rows(number), " rows of ",
                     row_bytes, " bytes, but ", follow, " bytes follow"));
  }
  records->Append(std::move(stored), opened.header.type,
                  opened.file->offset() + range.first * row_bytes, range.count,
                  range.first);
  return absl::OkStatus();
}

absl::Status Array::AddUnpacked(const OpenedArray& opened,
                                const RowRange& range,
                                StoredRecords* records) const {
  const int64_t row_bytes = RowBytes(opened.header);
  InputFile* const file = opened.file.get();
  TRIBUTARY_ASSIGN_OR_RETURN(ScratchFile scratch,
                             ScratchFile::Create(file->name()));
  TRIBUTARY_RETURN_IF_ERROR(file->Skip(range.first * row_bytes, "rows"));
  std::vector<uint8_t> piece;
  for (int64_t left = range.count * row_bytes; left > 0;) {
    piece.resize(std::min<int64_t>(left, 1 << 20));
    TRIBUTARY_RETURN_IF_ERROR(
        file->ReadExactly(piece.size(), piece.data(), "rows"));
    TRIBUTARY_RETURN_IF_ERROR(scratch.Append(piece.data(), piece.size()));
    left -= static_cast<int64_t>(piece.size());
  }
  if (range.first + range.count == opened.header.shape[0]) {
    TRIBUTARY_RETURN_IF_ERROR(file->ExpectEnd());
  }
  TRIBUTARY_ASSIGN_OR_RETURN(std::shared_ptr<const RandomAccessFile> stored,
                             scratch.Finish());
  records->Append(std::move(stored), opened.header.type, 0, range.count,
                  range.first);
  return absl::OkStatus();
}

absl::Status Array::AddFile(size_t number, const RowRange& range,
                            ReadOrder order, StoredRecords* records) const {
  TRIBUTARY_ASSIGN_OR_RETURN(const OpenedArray opened, open_(files_, number));
  if (order == ReadOrder::kRandom) {
    return opened.file->packed() ? AddUnpacked(opened, range, records)
                                 : AddPlain(opened, number, range, records);
  }
  const int64_t data = opened.file->offset();
  records->Append(std::make_shared<const SequentialFile>(
                      files_.Only(number), data + DataBytes(opened.header)),
                  opened.header.type,
                  data + range.first * RowBytes(opened.header), range.count,
                  range.first);
  return absl::OkStatus();
}

absl::StatusOr<StoredRecords> Array::Records(const RowRange& range,
                                             ReadOrder order) const {
  StoredRecords records(row_size());
  int64_t first = 0;  // of the file, among all rows
  for (size_t i = 0; i < files_.size(); ++i) {
    const int64_t begin = std::max(range.first, first);
    const int64_t end = std::min(range.first + range.count, first + rows(i));
    if (begin < end) {
      TRIBUTARY_RETURN_IF_ERROR(
          AddFile(i, {begin - first, end - begin}, order, &records));
    }
    first += rows(i);
  }
  return records;
}

// Counts the rows of all files. InvalidArgument when a file of labels has
// another number of rows than its samples.
absl::StatusOr<int64_t> CountRows(const ArrayFiles& files, const Array& samples,
                                  const Array* labels) {
  int64_t all = 0;
  for (size_t i = 0; i < files.samples.size(); ++i) {
    if (labels != nullptr && samples.rows(i) != labels->rows(i)) {
      return absl::InvalidArgumentError(absl::StrCat(
          files.samples.name(i), " holds ", samples.rows(i), " rows, but ",
          files.labels->name(i), " holds ", labels->rows(i)));
    }
    all += samples.rows(i);
  }
  return all;
}

absl::StatusOr<StoredRows::Columns> Open(const ArrayFiles& files,
                                         const OpenFile& open_samples,
                                         const OpenFile& open_labels,
                                         ReadOrder order) {
  const size_t count = files.samples.size();
  if (count == 0 || (files.labels && files.labels->size() != count)) {
    return absl::InvalidArgumentError(absl::StrCat(
        files.samples.name(), ": wanted one file of labels for each of the ",
        count, " files, got ", files.labels ? files.labels->size() : 0));
  }
  Array samples(files.samples, open_samples);
  TRIBUTARY_RETURN_IF_ERROR(samples.ReadHeaders());
  std::optional<Array> labels;
  if (files.labels) {
    labels.emplace(*files.labels, open_labels);
    TRIBUTARY_RETURN_IF_ERROR(AboutField(labels->ReadHeaders(), "labels"));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      const int64_t all,
      CountRows(files, samples, labels ? &*labels : nullptr));
  TRIBUTARY_ASSIGN_OR_RETURN(
      const RowRange rows,
      ResolveRange(files.range, all, files.samples.name()));
  StoredRows::Columns columns;
  columns.layout.name = files.samples.name();
  const Shape& shape = samples.shape(0);
  columns.layout.feature_shape.assign(shape.begin() + 1, shape.end());
  if (columns.layout.feature_shape.empty()) columns.layout.feature_shape = {1};
  columns.layout.numeric_width = samples.row_size();
  columns.layout.targets.kind = files.kind;
  TRIBUTARY_ASSIGN_OR_RETURN(columns.features, samples.Records(rows, order));
  if (!labels) return columns;
  columns.layout.targets.width = labels->row_size();
  columns.layout.targets.name = files.labels->name();
  TRIBUTARY_ASSIGN_OR_RETURN(
      columns.targets, AboutField(labels->Records(rows, order), "labels"));
  return columns;
}

OpenFile IdxOpener(int least_dimensions, int most_dimensions) {
  return [=](const InputFiles& files,
             size_t number) -> absl::StatusOr<OpenedArray> {
    OpenedArray opened;
    TRIBUTARY_ASSIGN_OR_RETURN(opened.file, files.Open(number));
    opened.header.type = NpyType::kUint8;
    TRIBUTARY_ASSIGN_OR_RETURN(
        opened.header.shape,
        ReadIdxHeader(opened.file.get(), least_dimensions, most_dimensions));
    return opened;
  };
}

absl::StatusOr<OpenedArray> OpenNpyFile(const InputFiles& files,
                                        size_t number) {
  OpenedArray opened;
  TRIBUTARY_ASSIGN_OR_RETURN(opened.file, files.Open(number));
  TRIBUTARY_ASSIGN_OR_RETURN(opened.header, ReadNpyHeader(opened.file.get()));
  return opened;
}

absl::StatusOr<OpenedArray> OpenAnyFile(const InputFiles& files, size_t number,
                                        const std::string& no_idx) {
  uint8_t magic[4] = {};
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> probe,
                             files.Open(number));
  TRIBUTARY_RETURN_IF_ERROR(probe->ReadExactly(4, magic, "IDX or NPY magic"));
  if (magic[0] == 0x93) return OpenNpyFile(files, number);
  if (magic[0] == 0 && magic[1] == 0) {
    if (!no_idx.empty()) return probe->Error(no_idx);
    return IdxOpener(1, 4)(files, number);
  }
  return probe->Error(
      "wanted an IDX or NPY file, but it begins like neither of them");
}

}  // namespace

absl::StatusOr<StoredRows::Columns> OpenIdx(const ArrayFiles& files,
                                            ReadOrder order) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      StoredRows::Columns columns,
      Open(files, IdxOpener(2, 4), IdxOpener(1, 1), order));
  columns.layout.byte_divisor = 255;
  return columns;
}

absl::StatusOr<StoredRows::Columns> OpenNpy(const ArrayFiles& files,
                                            std::vector<double> offsets,
                                            ReadOrder order) {
  const OpenFile open_labels =
      [&files](const InputFiles& labels,
               size_t number) -> absl::StatusOr<OpenedArray> {
    TRIBUTARY_ASSIGN_OR_RETURN(OpenedArray opened, OpenNpyFile(labels, number));
    const Shape& shape = opened.header.shape;
    const bool wide = shape.size() == 2 && files.kind != TargetKind::kClass;
    if (NumElements(shape) == shape[0] || wide) return opened;
    return absl::InvalidArgumentError(absl::StrCat(
        labels.name(number), ": wanted labels of shape [rows], got ",
        ShapeText(shape)));
  };
  TRIBUTARY_ASSIGN_OR_RETURN(StoredRows::Columns columns,
                             Open(files, OpenNpyFile, open_labels, order));
  columns.layout.offsets = std::move(offsets);
  return columns;
}

absl::StatusOr<StoredRows::Columns> OpenArrays(const ArrayFiles& files,
                                               const std::string& no_idx) {
  const auto open_samples = [&no_idx](const InputFiles& samples,
                                      size_t number) {
    return OpenAnyFile(samples, number, no_idx);
  };
  const auto open_labels = [](const InputFiles& labels, size_t number) {
    return OpenAnyFile(labels, number, "");
  };
  return Open(files, open_samples, open_labels, ReadOrder::kSequential);
}

}  // namespace tributary
