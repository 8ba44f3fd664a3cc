// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/schema/case_table.h"
#include "common/status/place.h"
#include "tributary/v1/data.pb.h"

namespace tributary {

// A kind of data source, as a job file describes it. Sources passed to a kind
// are of this kind. The code in worker/train/data/sources reads their rows. How
// to add a kind: docs/extending.md#a-data-source.
class SourceKind {
 public:
  virtual ~SourceKind() = default;

  // The lists of files and their keys: first the files of the rows, then the
  // files of labels, if they are separate. Empty: the rows are generated.
  struct Files {
    const char* key;
    google::protobuf::RepeatedPtrField<std::string>* paths;
  };
  virtual std::vector<Files> FilesOf(v1::DataSource* /*source*/) const {
    return {};
  }

  // The tokens of a sample; 0: samples are not sequences of tokens.
  virtual int64_t SequenceLength(const v1::DataSource& /*source*/) const {
    return 0;
  }
  // The features of a sample that is not a sequence; 0: only the files tell.
  virtual int64_t SampleWidth(const v1::DataSource& /*source*/) const {
    return 0;
  }

  // The fields, beside `normalize`, that another set takes from the training
  // set if it leaves them out.
  virtual std::vector<std::string> Inherited() const { return {}; }

  // Sets the defaults that depend on other fields.
  virtual void Resolve(v1::DataSource* /*source*/) const {}

  // Checks what the ranges of fields cannot express; `normalize` is checked for
  // all kinds elsewhere. `path` is the source's: "data.train.csv".
  virtual absl::Status Validate(const Places& /*places*/,
                                const std::string& /*path*/,
                                const v1::DataSource& /*source*/) const {
    return absl::OkStatus();
  }
};

// Filled by sources/kinds.
using SourceKinds = CaseTable<const SourceKind*>;

// Null: the source has no kind.
const SourceKind* KindOf(const v1::DataSource& source);

// The source's key in the job file, "csv"; empty: it has none.
std::string SourceKey(const v1::DataSource& source);
// The keys of all kinds, in the order of data.proto.
std::vector<std::string> SourceKeys();

// As in SourceKind; 0 without a kind.
int64_t SequenceLengthOf(const v1::DataSource& source);
int64_t SampleWidthOf(const v1::DataSource& source);
// Whether rows are drawn from a seed, not read from files. False without a
// kind.
bool IsGenerated(const v1::DataSource& source);

// Null: the source has no `normalize`.
const v1::NormalizeSpec* NormalizeOf(const v1::DataSource& source);
// Copies the spec into a source whose kind has `normalize`; null removes it.
void SetNormalize(const v1::NormalizeSpec* spec, v1::DataSource* source);

// Whether a set of the source's kind that leaves the field out takes it from
// the training set. False without a kind.
bool IsInherited(const v1::DataSource& source, absl::string_view field);
// Copies these fields into a set of the same kind that leaves them out.
void InheritFields(const v1::DataSource& train, v1::DataSource* other);

// The part of a source's rows that the job uses.
struct SourceRows {
  int64_t first_row = 0;
  int64_t rows = 0;  // 0: all that follow
};
SourceRows RowsOf(const v1::DataSource& source);

}  // namespace tributary
