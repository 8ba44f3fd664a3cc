// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/describe_preprocessing.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "common/job/sources/source_kind.h"

namespace tributary {
namespace {

void DescribeNumeric(const RawData& train, const Normalization& normalization,
                     v1::NumericFeatures* numeric) {
  numeric->set_count(train.numeric_width);
  numeric->mutable_mean()->Add(normalization.mean.begin(),
                               normalization.mean.end());
  numeric->mutable_deviation()->Add(normalization.std.begin(),
                                    normalization.std.end());
  numeric->mutable_offset()->Add(normalization.offsets.begin(),
                                 normalization.offsets.end());
  if (!train.bytes.empty()) numeric->set_byte_divisor(train.byte_divisor);
}

void DescribeColumn(const CsvWords& words, int index, v1::CsvColumn* column) {
  column->set_index(index);
  if (words.header.empty()) return;
  const std::string& name = words.header[index];
  if (std::count(words.header.begin(), words.header.end(), name) == 1) {
    column->set_name(name);
  }
}

// The texts that count as missing: each once, in the form that is compared.
void DescribeMissing(const v1::MissingSpec& missing,
                     absl::Span<const double> fill, v1::CsvTable* table) {
  std::set<std::string> texts = {"", "?"};
  for (const std::string& text : missing.texts()) {
    texts.insert(std::string(absl::StripAsciiWhitespace(text)));
  }
  for (const std::string& text : texts) table->add_missing(text);
  table->mutable_fill()->Add(fill.begin(), fill.end());
  table->set_skip_missing(missing.has_skip());
}

void DescribeCsv(const v1::CsvSource& source, const LearnedTable& learned,
                 v1::CsvTable* table) {
  const CsvWords& words = *learned.words;
  table->set_header(!words.header.empty());
  table->set_delimiter(source.delimiter());
  table->set_columns(words.num_columns);
  DescribeColumn(words, words.roles.label, table->mutable_label());
  for (int column : words.roles.numeric) {
    DescribeColumn(words, column, table->add_numeric());
  }
  for (size_t i = 0; i < words.roles.categorical.size(); ++i) {
    v1::CsvCategories* categories = table->add_categorical();
    DescribeColumn(words, words.roles.categorical[i],
                   categories->mutable_column());
    for (const std::string& word : words.categories[i]) {
      categories->add_categories(word);
    }
  }
  if (source.has_missing()) {
    DescribeMissing(source.missing(), learned.fill, table);
  }
}

}  // namespace

v1::Preprocessing DescribePreprocessing(const v1::DataSource& source,
                                        const RawData& train,
                                        const Normalization& normalization,
                                        const LearnedTable& table,
                                        const Vocabulary& vocabulary) {
  v1::Preprocessing described;
  described.set_source(SourceKey(source));
  described.mutable_feature_shape()->Add(train.feature_shape.begin(),
                                         train.feature_shape.end());
  described.set_target_width(train.targets.width);
  for (const std::string& name : train.targets.class_names) {
    described.add_class_names(name);
  }
  if (train.tokens.empty()) {
    DescribeNumeric(train, normalization, described.mutable_numeric());
  }
  if (source.has_csv()) {
    DescribeCsv(source.csv(), table, described.mutable_csv());
  }
  if (source.has_text()) {
    v1::TextTokens* text = described.mutable_text();
    text->set_tokens(source.text().tokens());
    text->set_length(source.text().length());
    text->mutable_vocabulary()->Add(vocabulary.tokens.begin(),
                                    vocabulary.tokens.end());
  }
  return described;
}

}  // namespace tributary
