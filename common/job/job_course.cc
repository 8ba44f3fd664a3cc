// SPDX-License-Identifier: Apache-2.0
#include "common/job/job_course.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"

namespace tributary {
namespace {

std::string OrderInMemory(const v1::DataSpec& data) {
  return data.shuffle().none()
             ? "shuffle: none"
             : absl::StrCat("shuffle: {seed: ", data.shuffle().seed(), "}");
}

// The name of the order, as far as it is known without the rows.
std::string OrderByJob(const v1::DataSpec& data) {
  const std::string order = OrderInMemory(data);
  return data.shuffle().none() || !data.has_stream()
             ? order
             : absl::StrCat(order, ", stream: {buffer_bytes: ",
                            data.stream().buffer_bytes(), "}");
}

// The stretch of a checkpoint whose version did not record the rows: with the
// largest number of rows for which the recorded steps are right.
DataStretch WithoutRows(const v1::CheckpointManifest& manifest) {
  DataStretch stretch = StretchOf(manifest.job(), 1);
  stretch.order = OrderByJob(manifest.job().data());
  stretch.rows_unknown = true;
  if (__builtin_mul_overflow(stretch.global_batch, stretch.accumulation,
                             &stretch.rows) ||
      __builtin_mul_overflow(stretch.rows,
                             std::max<int64_t>(1, manifest.steps_per_epoch()),
                             &stretch.rows)) {
    stretch.rows = stretch.global_batch;
  }
  return stretch;
}

// Whether `now` may equal `before`, whose number of rows is unknown.
bool MayBe(const DataStretch& before, const DataStretch& now) {
  DataStretch as_now = before;
  as_now.rows = now.rows;
  return now.rows <= before.rows &&
         as_now.steps_per_epoch() == before.steps_per_epoch();
}

absl::Status WithinEpoch(const DataPosition& at, const auto&... text) {
  return absl::FailedPreconditionError(absl::StrCat(
      "data: the checkpoint is ", at.row, " rows into epoch ", at.epoch + 1,
      ", ", text..., ", or take a checkpoint of the end of an epoch"));
}

template <typename Layers>
bool HasBatchNorm(const Layers& layers) {
  return absl::c_any_of(layers, [](const v1::LayerSpec& layer) {
    return layer.has_batch_norm() || HasBatchNorm(layer.residual().body()) ||
           HasBatchNorm(layer.residual().shortcut());
  });
}

// The most workers, of those that the job has, among which a global batch of
// `rows` can be divided; 0: it cannot be divided.
int64_t WorkersFor(const v1::JobSpec& job, int64_t rows) {
  const DeviceMesh mesh = StrategyOf(job).mesh();
  const int64_t parts =
      std::max(1, job.strategy().pipeline_parallel().micro_batches());
  const int64_t least =
      parts * (HasBatchNorm(job.model().sequential()) ? 2 : 1);
  const int64_t workers =
      std::min<int64_t>(mesh.data, rows / least) * mesh.model_size();
  const int64_t backups =
      job.strategy().parameter_server().sync().bsp().backup_workers();
  return workers > backups ? workers : 0;
}

// "; continue with ..."; empty: only a checkpoint of the end of an epoch helps.
std::string BatchRemedy(const v1::JobSpec& job, int64_t rows) {
  if (job.has_program()) {
    return absl::StrCat("; continue with as many ranks times rows as before, ",
                        rows, " rows");
  }
  const int64_t workers = WorkersFor(job, rows);
  if (workers == 0) return "";
  return absl::StrCat("; continue with ",
                      workers < job.cluster().workers()
                          ? absl::StrCat("--workers ", workers, " ")
                          : "",
                      "--set data.global_batch_size=", rows);
}

absl::Status CheckFits(const v1::JobSpec& job, const DataStretch& before,
                       const DataPosition& at, const DataStretch& now) {
  if (at.row == 0) return absl::OkStatus();
  const std::string order =
      before.rows_unknown ? OrderByJob(job.data()) : now.order;
  if (order != before.order) {
    return WithinEpoch(at, "whose rows come in the order \"", before.order,
                       "\"; with the order \"", order,
                       "\" some rows would be used twice and others never; "
                       "keep the order");
  }
  if (before.rows_unknown ? !MayBe(before, now) : before.rows != now.rows) {
    return WithinEpoch(
        at, "which has ", before.rows_unknown ? "at most " : "", before.rows,
        " rows; there are ", now.rows,
        " rows now, so some would be used twice and others never; continue "
        "with the same rows");
  }
  if (at.row % now.global_batch != 0) {
    return WithinEpoch(at, "which is not a multiple of the global batch of ",
                       now.global_batch,
                       " rows, so rows would be used twice or never",
                       BatchRemedy(job, before.global_batch));
  }
  return absl::OkStatus();
}

}  // namespace

DataStretch StretchOf(const v1::JobSpec& job, int64_t rows) {
  const v1::DataSpec& data = job.data();
  DataStretch stretch;
  stretch.rows = rows;
  stretch.global_batch = data.batch_case() == v1::DataSpec::kGlobalBatchSize
                             ? data.global_batch_size()
                             : data.batch_size() * StrategyOf(job).mesh().data;
  stretch.global_batch = std::max<int64_t>(1, stretch.global_batch);
  stretch.accumulation =
      std::max<int64_t>(1, job.training().gradient_accumulation());
  stretch.order = OrderInMemory(data);
  return stretch;
}

DataCourse CourseOf(const v1::CheckpointManifest& manifest) {
  if (manifest.course_size() > 0) {
    return CourseFromProto(manifest.course()).value_or(DataCourse());
  }
  return manifest.job().has_program() ? DataCourse()
                                      : DataCourse(WithoutRows(manifest));
}

absl::StatusOr<DataCourse> GoOn(const v1::JobSpec& job,
                                const DataCourse& before, int64_t step,
                                DataStretch now) {
  now.step = 0;
  now.begin = {};
  if (before.empty() || step == 0) return DataCourse(std::move(now));
  DataCourse course = before.UpTo(step);
  const DataStretch& last = course.last();
  if (now.TakesAs(last)) return course;
  const DataPosition at = course.After(step);
  const absl::Status fits = CheckFits(job, last, at, now);
  if (!fits.ok()) return fits;
  now.step = step;
  now.begin = at;
  course.Add(std::move(now));
  return course;
}

absl::StatusOr<DataCourse> CourseFromProto(const SavedCourse& saved) {
  std::vector<DataStretch> stretches;
  for (const v1::DataStretch& s : saved) {
    stretches.push_back({.step = s.step(),
                         .begin = {s.epoch(), s.row()},
                         .rows = s.rows(),
                         .global_batch = s.global_batch(),
                         .accumulation = s.accumulation(),
                         .order = s.order(),
                         .rows_unknown = s.rows_unknown()});
  }
  std::optional<DataCourse> course = DataCourse::Create(std::move(stretches));
  if (course) return *std::move(course);
  return absl::InvalidArgumentError(
      "the course of the training rows contradicts itself");
}

void CourseToProto(const DataCourse& course, SavedCourse* saved) {
  saved->Clear();
  for (const DataStretch& stretch : course.stretches()) {
    v1::DataStretch& s = *saved->Add();
    s.set_step(stretch.step);
    s.set_epoch(stretch.begin.epoch);
    s.set_row(stretch.begin.row);
    s.set_rows(stretch.rows);
    s.set_global_batch(stretch.global_batch);
    s.set_accumulation(stretch.accumulation);
    s.set_order(stretch.order);
    s.set_rows_unknown(stretch.rows_unknown);
  }
}

}  // namespace tributary
