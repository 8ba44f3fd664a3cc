// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/input_meaning.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/job/sources/source_kind.h"
#include "common/wire/crc32c/crc32c.h"

namespace tributary {
namespace {

// The checksum of a list of texts: 0 if the list is empty, otherwise never 0.
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

// The feature columns. A column without a name counts by its position; the
// column of the label is not counted.
void SetColumns(const v1::CsvTable& table, v1::InputMeaning* meaning) {
  if (table.numeric().empty() && table.categorical().empty()) return;
  TextsChecksum columns;
  const auto add = [&](const v1::CsvColumn& column) {
    columns.Add(column.name());
    if (!column.name().empty()) return;
    const bool behind = column.index() > table.label().index();
    columns.Add(absl::StrCat(column.index() - (behind ? 1 : 0)));
    meaning->set_unnamed_columns(true);
  };
  for (const v1::CsvColumn& column : table.numeric()) add(column);
  columns.Add("");
  for (const v1::CsvCategories& one : table.categorical()) add(one.column());
  meaning->set_columns(columns.value());
}

// Names and positions cannot be compared with each other.
bool HasOtherColumns(const v1::InputMeaning& before,
                     const v1::InputMeaning& now) {
  return before.columns() != 0 && now.columns() != 0 &&
         before.unnamed_columns() == now.unnamed_columns() &&
         before.columns() != now.columns();
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
  SetColumns(preprocessing.csv(), &meaning);
  meaning.set_categories(categories.value());
  meaning.set_classes(classes.value());
  meaning.set_vocabulary(words.value());
  return meaning;
}

std::string MeaningChange(const v1::InputMeaning& before,
                          const v1::InputMeaning& now) {
  if (HasOtherColumns(before, now)) return "the columns";
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
