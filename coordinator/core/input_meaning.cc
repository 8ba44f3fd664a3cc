// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/input_meaning.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "common/job/sources/source_kind.h"
#include "common/wire/crc32c/crc32c.h"

namespace tributary {
namespace {

// The checksum of a list of texts; 0 of an empty one, otherwise never 0.
class TextsChecksum {
 public:
  void Add(absl::string_view text) {
    const uint64_t size = text.size();
    crc_ = ExtendCrc32c(crc_, &size, sizeof(size));
    crc_ = ExtendCrc32c(crc_, text.data(), text.size());
    empty_ = false;
  }
  uint32_t value() const { return empty_ ? 0 : std::max(crc_, uint32_t{1}); }

 private:
  uint32_t crc_ = 0;
  bool empty_ = true;
};

uint32_t ColumnsOf(const v1::CsvTable& table) {
  TextsChecksum columns;
  if (!table.header()) return 0;
  for (const v1::CsvColumn& column : table.numeric()) {
    columns.Add(column.name());
  }
  columns.Add("");
  for (const v1::CsvCategories& column : table.categorical()) {
    columns.Add(column.column().name());
  }
  return columns.value();
}

}  // namespace

v1::InputMeaning MeaningOf(const v1::Preprocessing& preprocessing) {
  TextsChecksum categories, classes;
  for (const v1::CsvCategories& column : preprocessing.csv().categorical()) {
    categories.Add("");
    for (const std::string& word : column.categories()) categories.Add(word);
  }
  for (const std::string& name : preprocessing.class_names()) {
    classes.Add(name);
  }
  const auto& vocabulary = preprocessing.text().vocabulary();
  TextsChecksum words;
  if (!vocabulary.empty()) {
    words.Add({reinterpret_cast<const char*>(vocabulary.data()),
               vocabulary.size() * sizeof(vocabulary[0])});
  }
  v1::InputMeaning meaning;
  meaning.set_columns(ColumnsOf(preprocessing.csv()));
  meaning.set_categories(categories.value());
  meaning.set_classes(classes.value());
  meaning.set_vocabulary(words.value());
  return meaning;
}

std::string MeaningChange(const v1::InputMeaning& before,
                          const v1::InputMeaning& now) {
  if (before.columns() != 0 && now.columns() != 0 &&
      before.columns() != now.columns()) {
    return "the columns";
  }
  if (before.categories() != now.categories()) return "the categories";
  if (before.classes() != now.classes()) return "the classes";
  return before.vocabulary() != now.vocabulary() ? "the tokens" : "";
}

uint32_t EvaluationBasis(const v1::JobSpec& job,
                         const v1::DeclareModelRequest& declaration) {
  const v1::DataSpec& data = job.data();
  const v1::DataSource& evaluated = data.validation().has_source()
                                        ? data.validation().source()
                                    : data.has_validation() ? data.train()
                                                            : data.test();
  TextsChecksum basis;
  basis.Add(job.training().loss().SerializeAsString());
  for (const double weight : declaration.class_weights()) {
    basis.Add({reinterpret_cast<const char*>(&weight), sizeof(weight)});
  }
  const uint32_t samples = declaration.evaluated_checksum();
  basis.Add({reinterpret_cast<const char*>(&samples), sizeof(samples)});
  if (IsGenerated(evaluated)) {
    basis.Add(evaluated.SerializeAsString());
    basis.Add(data.validation().SerializeAsString());
  }
  basis.Add(declaration.preprocessing().SerializeAsString());
  return basis.value();
}

}  // namespace tributary
