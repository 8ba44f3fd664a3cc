// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/stream/stored_csv.h"

#include <memory>
#include <optional>
#include <utility>

#include "common/status/status_macros.h"
#include "worker/train/data/readers/csv/csv_table.h"
#include "worker/train/data/stream/scratch_file.h"

namespace tributary {
namespace {

// The rows of a table, on their way to disk.
class CsvScratch {
 public:
  static absl::StatusOr<std::unique_ptr<CsvScratch>> Create(
      const std::string& name) {
    std::unique_ptr<CsvScratch> scratch(new CsvScratch);
    for (std::optional<ScratchFile>* file :
         {&scratch->numbers_, &scratch->codes_, &scratch->targets_}) {
      TRIBUTARY_ASSIGN_OR_RETURN(*file, ScratchFile::Create(name));
    }
    return scratch;
  }

  absl::Status Take(const RawData& rows,
                    absl::Span<const int32_t> label_words) {
    rows_ += rows.rows;
    const auto append = [](auto values, ScratchFile* file) {
      return file->Append(values.data(), values.size() * sizeof(values[0]));
    };
    TRIBUTARY_RETURN_IF_ERROR(append(absl::MakeSpan(rows.numbers), &*numbers_));
    TRIBUTARY_RETURN_IF_ERROR(append(absl::MakeSpan(rows.codes), &*codes_));
    return rows.targets.kind == TargetKind::kReal
               ? append(absl::MakeSpan(rows.targets.values), &*targets_)
               : append(label_words, &*targets_);
  }

  absl::StatusOr<StoredRows::Columns> Finish(CsvMeanings meanings) {
    StoredRows::Columns columns;
    const auto width = static_cast<int64_t>(meanings.codes.size());
    columns.layout = std::move(meanings.layout);
    if (columns.layout.numeric_width > 0) {
      TRIBUTARY_ASSIGN_OR_RETURN(
          columns.features,
          Records(&*numbers_, columns.layout.numeric_width, NpyType::kFloat32));
    }
    if (width > 0) {
      TRIBUTARY_ASSIGN_OR_RETURN(columns.codes,
                                 Records(&*codes_, width, NpyType::kInt32));
    }
    columns.offsets_are_off = true;
    columns.code_places = std::move(meanings.codes);
    const bool real = columns.layout.targets.kind == TargetKind::kReal;
    TRIBUTARY_ASSIGN_OR_RETURN(
        columns.targets,
        Records(&*targets_, 1, real ? NpyType::kFloat32 : NpyType::kInt32));
    columns.target_values = std::move(meanings.labels);
    return columns;
  }

 private:
  CsvScratch() = default;

  // `width` values of four bytes each row.
  absl::StatusOr<StoredRecords> Records(ScratchFile* file, int64_t width,
                                        NpyType type) const {
    TRIBUTARY_ASSIGN_OR_RETURN(std::shared_ptr<const RandomAccessFile> stored,
                               file->Finish());
    StoredRecords records(width);
    records.Append(std::move(stored), type, 0, rows_);
    return records;
  }

  std::optional<ScratchFile> numbers_;
  std::optional<ScratchFile> codes_;
  std::optional<ScratchFile> targets_;
  int64_t rows_ = 0;
};

}  // namespace

absl::StatusOr<StoredRows::Columns> StoreTrainingCsv(const InputFiles& files,
                                                     const CsvOptions& options,
                                                     TargetKind kind,
                                                     CsvWords* words) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<CsvScratch> scratch,
                             CsvScratch::Create(files.name()));
  CsvTable table(
      files, options, kind,
      [&scratch](const RawData& rows, absl::Span<const int32_t> label_words) {
        return scratch->Take(rows, label_words);
      });
  TRIBUTARY_RETURN_IF_ERROR(table.Read());
  *words = table.Words();
  TRIBUTARY_ASSIGN_OR_RETURN(CsvMeanings meanings, table.Meanings(*words));
  return scratch->Finish(std::move(meanings));
}

absl::StatusOr<StoredRows::Columns> StoreTestCsv(
    const InputFiles& files, const CsvOptions& options, TargetKind kind,
    const CsvWords& words, std::vector<std::string>* warnings) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<CsvScratch> scratch,
                             CsvScratch::Create(files.name()));
  CsvTable table(
      files, options, kind,
      [&scratch](const RawData& rows, absl::Span<const int32_t> label_words) {
        return scratch->Take(rows, label_words);
      });
  TRIBUTARY_RETURN_IF_ERROR(table.Read());
  TRIBUTARY_RETURN_IF_ERROR(table.CheckColumns(words));
  table.ReportUnknown(words, warnings);
  TRIBUTARY_ASSIGN_OR_RETURN(CsvMeanings meanings, table.Meanings(words));
  return scratch->Finish(std::move(meanings));
}

}  // namespace tributary
