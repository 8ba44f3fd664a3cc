// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tributary/v1/model_record.pb.h"

namespace tributary {

// A table with the columns animal (the label), age, colour and mass.
inline v1::Preprocessing AnimalTable(bool header = true) {
  v1::Preprocessing table;
  table.set_source("csv");
  table.add_feature_shape(4);
  table.set_target_width(1);
  table.mutable_numeric()->set_count(2);
  v1::CsvTable* csv = table.mutable_csv();
  csv->set_header(header);
  csv->set_delimiter(",");
  csv->set_columns(4);
  const auto set = [header](v1::CsvColumn* column, int index,
                            const char* name) {
    column->set_index(index);
    if (header) column->set_name(name);
  };
  set(csv->mutable_label(), 0, "animal");
  set(csv->add_numeric(), 1, "age");
  set(csv->add_numeric(), 3, "mass");
  v1::CsvCategories* colour = csv->add_categorical();
  set(colour->mutable_column(), 2, "colour");
  colour->add_categories("blue");
  colour->add_categories("red");
  table.add_class_names("cat");
  table.add_class_names("dog");
  return table;
}

// A text of the letters a to e in samples of `length`.
inline v1::Preprocessing LetterText(int64_t length) {
  v1::Preprocessing text;
  text.set_source("text");
  text.add_feature_shape(length);
  text.set_target_width(length);
  text.mutable_text()->set_length(length);
  for (char c = 'a'; c <= 'e'; ++c) text.mutable_text()->add_vocabulary(c);
  return text;
}

// A record of classes with these names.
inline v1::ModelRecord ClassRecord(const std::vector<std::string>& names) {
  v1::ModelRecord record;
  record.set_output(v1::OUTPUT_KIND_CLASSES);
  record.mutable_preprocessing()->set_source("csv");
  for (const std::string& name : names) {
    record.mutable_preprocessing()->add_class_names(name);
  }
  return record;
}

}  // namespace tributary
