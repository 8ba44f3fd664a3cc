// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/input_meaning.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace tributary {
namespace {

v1::Preprocessing Table(const std::vector<std::string>& columns,
                        const std::vector<std::string>& categories,
                        const std::vector<std::string>& classes) {
  v1::Preprocessing table;
  table.mutable_csv()->set_header(true);
  for (const std::string& name : columns) {
    table.mutable_csv()->add_numeric()->set_name(name);
  }
  v1::CsvCategories* column = table.mutable_csv()->add_categorical();
  column->mutable_column()->set_name("kind");
  for (const std::string& word : categories) column->add_categories(word);
  for (const std::string& name : classes) table.add_class_names(name);
  return table;
}

std::string Change(const v1::Preprocessing& now) {
  const v1::Preprocessing before = Table({"a", "b"}, {"p", "q"}, {"no", "yes"});
  return MeaningChange(MeaningOf(before), MeaningOf(now));
}

TEST(InputMeaningTest, NamesInTheirOrderAreCompared) {
  EXPECT_EQ(Change(Table({"a", "b"}, {"p", "q"}, {"no", "yes"})), "");
  EXPECT_EQ(Change(Table({"b", "a"}, {"p", "q"}, {"no", "yes"})),
            "the columns");
  EXPECT_EQ(Change(Table({"a", "b"}, {"q", "z"}, {"no", "yes"})),
            "the categories");
  EXPECT_EQ(Change(Table({"a", "b"}, {"pq"}, {"no", "yes"})), "the categories");
  EXPECT_EQ(Change(Table({"a", "b"}, {"p", "q"}, {"yes", "no"})),
            "the classes");
  EXPECT_EQ(Change(Table({"a", "b"}, {"p", "q"}, {})), "the classes");
}

// A file without header, whose feature and label columns these are.
v1::Preprocessing Bare(const std::vector<int>& columns, int label) {
  v1::Preprocessing table;
  table.mutable_csv()->mutable_label()->set_index(label);
  for (const int column : columns) {
    table.mutable_csv()->add_numeric()->set_index(column);
  }
  return table;
}

TEST(InputMeaningTest, ColumnsWithoutNamesHaveTheirPositions) {
  const v1::InputMeaning before = MeaningOf(Bare({0, 1}, 3));
  const auto change = [&before](const v1::Preprocessing& now) {
    return MeaningChange(before, MeaningOf(now));
  };
  EXPECT_EQ(change(Bare({0, 1}, 3)), "");
  EXPECT_EQ(change(Bare({1, 2}, 0)), "");  // the label is elsewhere
  EXPECT_EQ(change(Bare({1, 0}, 3)), "the columns");
  EXPECT_EQ(change(Bare({0, 2}, 3)), "the columns");
  EXPECT_EQ(change(Bare({0, 1, 2}, 3)), "the columns");
}

TEST(InputMeaningTest, AColumnWhoseNameStandsTwiceHasItsPosition) {
  v1::Preprocessing before = Table({"", "b"}, {"p"}, {});
  before.mutable_csv()->mutable_label()->set_index(9);
  v1::Preprocessing now = before;
  EXPECT_EQ(MeaningChange(MeaningOf(before), MeaningOf(now)), "");
  now.mutable_csv()->mutable_numeric(0)->set_index(4);
  EXPECT_EQ(MeaningChange(MeaningOf(before), MeaningOf(now)), "the columns");
}

TEST(InputMeaningTest, PositionsAreNotComparedWithNames) {
  const v1::InputMeaning bare = MeaningOf(Bare({0, 1}, 2));
  v1::Preprocessing named = Bare({0, 1}, 2);
  named.mutable_csv()->set_header(true);
  named.mutable_csv()->mutable_numeric(0)->set_name("a");
  named.mutable_csv()->mutable_numeric(1)->set_name("b");
  EXPECT_EQ(MeaningChange(bare, MeaningOf(named)), "");
  EXPECT_EQ(MeaningChange(MeaningOf(named), bare), "");
}

TEST(InputMeaningTest, TokensOfTextsAreCompared) {
  v1::Preprocessing before, now;
  for (const int token : {10, 97, 98}) {
    before.mutable_text()->add_vocabulary(token);
    now.mutable_text()->add_vocabulary(token == 98 ? 99 : token);
  }
  EXPECT_EQ(MeaningChange(MeaningOf(before), MeaningOf(before)), "");
  EXPECT_EQ(MeaningChange(MeaningOf(before), MeaningOf(now)), "the tokens");
}

// Each change makes evaluations incomparable; a file's path does not.
TEST(EvaluationBasisTest, FollowsLossSamplesAndPreprocessing) {
  v1::JobSpec job;
  job.mutable_training()->mutable_loss()->mutable_cross_entropy();
  job.mutable_data()->mutable_train()->mutable_csv()->add_path("a.csv");
  v1::DeclareModelRequest declared;
  *declared.mutable_preprocessing() = Table({"a"}, {"p"}, {});
  declared.set_evaluated_checksum(7);
  const uint32_t basis = EvaluationBasis(job, declared);

  v1::JobSpec same = job;
  same.mutable_data()->mutable_train()->mutable_csv()->set_path(0, "b.csv");
  same.mutable_training()->set_epochs(9);
  EXPECT_EQ(EvaluationBasis(same, declared), basis);
  v1::DeclareModelRequest other_test = declared;
  other_test.set_evaluation_checksum(9);  // beside a validation set
  EXPECT_EQ(EvaluationBasis(job, other_test), basis);

  std::set<uint32_t> all = {0, basis};
  const auto add = [&all](const v1::JobSpec& changed_job,
                          const v1::DeclareModelRequest& changed) {
    EXPECT_TRUE(all.insert(EvaluationBasis(changed_job, changed)).second);
  };
  v1::JobSpec smooth = job;
  smooth.mutable_training()
      ->mutable_loss()
      ->mutable_cross_entropy()
      ->set_label_smoothing(.1);
  add(smooth, declared);
  v1::DeclareModelRequest weighed = declared;
  weighed.add_class_weights(.1);
  add(job, weighed);
  v1::DeclareModelRequest others = declared;
  others.set_evaluated_checksum(8);
  add(job, others);
  v1::DeclareModelRequest scaled = declared;
  scaled.mutable_preprocessing()->mutable_numeric()->add_mean(.5);
  add(job, scaled);

  // Generated samples have no checksum.
  v1::JobSpec generated = job;
  generated.mutable_data()->mutable_test()->mutable_synthetic()->set_rows(8);
  add(generated, declared);
  generated.mutable_data()->mutable_test()->mutable_synthetic()->set_seed(5);
  add(generated, declared);
  generated.mutable_data()->mutable_train()->mutable_synthetic()->set_rows(8);
  generated.mutable_data()->mutable_validation()->set_fraction(.1);
  add(generated, declared);
  generated.mutable_data()->mutable_validation()->set_fraction(.2);
  add(generated, declared);
}

}  // namespace
}  // namespace tributary
