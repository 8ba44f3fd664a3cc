// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/nccl/fake_nccl.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tributary::testing {

// One rank's functions. A stream refers to the communicator that it was last
// used with; an event refers to a number of its calls.
class FakeRank final : public NcclApi {
 public:
  FakeRank(FakeNccl* nccl, std::string device_id, FakeNccl::Behaviour behaviour)
      : nccl_(*nccl), device_id_(std::move(device_id)), behaviour_(behaviour) {}

  std::string device_id() const override { return device_id_; }

  Code NewId(NcclId* id) override {
    absl::MutexLock lock(&nccl_.mu_);
    const uint64_t number = ++nccl_.ids_;
    std::memcpy(id->data(), &number, sizeof(number));
    return Code::kDone;
  }
  Code Connect(int size, const NcclId& id, int rank, Comm* comm) override {
    if (behaviour_.fails_to_connect) return Fail("unhandled system error");
    absl::MutexLock lock(&nccl_.mu_);
    std::shared_ptr<FakeNccl::Group>& group = nccl_.groups_[id];
    if (group == nullptr) {
      group = std::make_shared<FakeNccl::Group>();
      group->size = size;
      group->calls.resize(size);
      group->joined.resize(size);
      group->finalized.resize(size);
    }
    if (group->size != size || group->joined[rank]) return Fail("invalid");
    group->joined[rank] = true;
    auto* side = new FakeNccl::Side;
    side->group = group;
    side->rank = rank;
    side->never = behaviour_.never_connects;
    *comm = side;
    ++nccl_.opened_;
    return Code::kInProgress;
  }
  Code State(Comm comm) override {
    absl::MutexLock lock(&nccl_.mu_);
    if (!nccl_.async_error_.empty()) return Fail(nccl_.async_error_);
    FakeNccl::Side& side = *Of(comm);
    if (side.never || !All(side.group->joined)) {
      return Code::kInProgress;
    }
    if (side.unsettled > 0) {
      if (--side.unsettled > 0) return Code::kInProgress;
      Enqueue(side);
    }
    if (side.group->finalized[side.rank]) {
      return All(side.group->finalized) ? Code::kDone : Code::kInProgress;
    }
    return Code::kDone;
  }
  Code Finalize(Comm comm) override {
    absl::MutexLock lock(&nccl_.mu_);
    Of(comm)->group->finalized[Of(comm)->rank] = true;
    return Code::kInProgress;
  }
  void Destroy(Comm comm) override {
    absl::MutexLock lock(&nccl_.mu_);
    ++nccl_.closed_;
    delete Of(comm);
  }
  void Abort(Comm comm) override {
    absl::MutexLock lock(&nccl_.mu_);
    ++nccl_.aborted_;
    Of(comm)->group->broken = true;
    aborted_.emplace_back(Of(comm));
  }
  std::string LastError(Comm /*comm*/) override { return "NCCL: " + error_; }

  Code BeginGroup() override {
    touched_ = nullptr;
    return Code::kDone;
  }
  Code EndGroup() override {
    if (touched_ == nullptr) return Code::kDone;
    absl::MutexLock lock(&nccl_.mu_);
    FakeNccl::Side& side = *Of(touched_);
    side.unsettled = behaviour_.settles_after;
    if (side.unsettled > 0) return Code::kInProgress;
    Enqueue(side);
    return Code::kDone;
  }
  Code AllReduce(float* data, size_t n, Comm comm, Stream stream) override {
    return Add({FakeNccl::Part::kAllReduce, data, n, 0}, comm, stream);
  }
  Code Reduce(float* data, size_t n, int root, Comm comm,
              Stream stream) override {
    return Add({FakeNccl::Part::kReduce, data, n, root}, comm, stream);
  }
  Code ReduceScatter(float* data, size_t n, int /*rank*/, Comm comm,
                     Stream stream) override {
    return Add({FakeNccl::Part::kReduceScatter, data, n, 0}, comm, stream);
  }
  Code AllGather(float* data, size_t n, int /*rank*/, Comm comm,
                 Stream stream) override {
    return Add({FakeNccl::Part::kAllGather, data, n, 0}, comm, stream);
  }
  Code Broadcast(float* data, size_t n, int root, Comm comm,
                 Stream stream) override {
    return Add({FakeNccl::Part::kBroadcast, data, n, root}, comm, stream);
  }
  Code Send(const float* data, size_t n, int to, Comm comm,
            Stream stream) override {
    return Add({FakeNccl::Part::kSend, const_cast<float*>(data), n, to}, comm,
               stream);
  }
  Code Receive(float* data, size_t n, int from, Comm comm,
               Stream stream) override {
    return Add({FakeNccl::Part::kReceive, data, n, from}, comm, stream);
  }

  Code NewStream(Stream* stream) override {
    *stream = new Comm(nullptr);
    return Count(&FakeNccl::streams_, 1);
  }
  void FreeStream(Stream stream) override {
    delete static_cast<Comm*>(stream);
    Count(&FakeNccl::streams_, -1);
  }
  Code FollowOps(Stream /*stream*/) override { return Code::kDone; }
  struct Mark {
    Comm comm = nullptr;
    std::shared_ptr<FakeNccl::Group> group;
    size_t calls = 0;
  };
  Code NewEvent(Event* event) override {
    *event = new Mark;
    return Count(&FakeNccl::events_, 1);
  }
  void FreeEvent(Event event) override {
    delete static_cast<Mark*>(event);
    Count(&FakeNccl::events_, -1);
  }
  Code Record(Event event, Stream stream) override {
    absl::MutexLock lock(&nccl_.mu_);
    const Comm comm = *static_cast<Comm*>(stream);
    const FakeNccl::Side& side = *Of(comm);
    *static_cast<Mark*>(event) = {comm, side.group,
                                  side.group->calls[side.rank].size()};
    return Code::kDone;
  }
  Code Query(Event event) override {
    absl::MutexLock lock(&nccl_.mu_);
    const Mark& mark = *static_cast<Mark*>(event);
    const bool gone =
        std::any_of(aborted_.begin(), aborted_.end(),
                    [&](const auto& side) { return side.get() == mark.comm; });
    return gone || mark.calls <= mark.group->done ? Code::kDone
                                                  : Code::kInProgress;
  }

 private:
  static FakeNccl::Side* Of(Comm comm) {
    return static_cast<FakeNccl::Side*>(comm);
  }
  static bool All(const std::vector<bool>& flags) {
    return std::count(flags.begin(), flags.end(), true) ==
           static_cast<int64_t>(flags.size());
  }
  Code Fail(const std::string& why) {
    error_ = why;
    return Code::kFailed;
  }
  Code Add(const FakeNccl::Part& part, Comm comm, Stream stream) {
    *static_cast<Comm*>(stream) = comm;
    touched_ = comm;
    Of(comm)->open.push_back(part);
    return Code::kDone;
  }
  void Enqueue(FakeNccl::Side& side) ABSL_EXCLUSIVE_LOCKS_REQUIRED(nccl_.mu_) {
    side.group->calls[side.rank].push_back(std::exchange(side.open, {}));
    nccl_.RunDoneLocked(*side.group);
  }
  Code Count(int FakeNccl::*counter, int by) {
    absl::MutexLock lock(&nccl_.mu_);
    nccl_.*counter += by;
    return Code::kDone;
  }

  FakeNccl& nccl_;
  const std::string device_id_;
  const FakeNccl::Behaviour behaviour_;
  std::string error_;
  Comm touched_ = nullptr;  // by the group call being built
  std::vector<std::unique_ptr<FakeNccl::Side>> aborted_;  // kept alive here
};

std::unique_ptr<NcclApi> FakeNccl::Open(std::string device_id,
                                        Behaviour behaviour) {
  return std::make_unique<FakeRank>(this, std::move(device_id), behaviour);
}

// Sums from the last rank to the first, because NCCL promises no order.
void FakeNccl::RunDoneLocked(Group& group) {
  const auto made = [&group] {
    if (group.broken) return false;
    for (const std::vector<Call>& calls : group.calls) {
      if (calls.size() <= group.done) return false;
    }
    return true;
  };
  for (; made(); ++group.done) {
    const auto call = [&group](int rank) -> const Call& {
      return group.calls[rank][group.done];
    };
    const auto sum = [&](size_t part, size_t i) {
      float total = 0;
      for (int r = group.size - 1; r >= 0; --r) total += call(r)[part].data[i];
      return total;
    };
    std::map<std::pair<int, int>, std::deque<const Part*>> sent;
    for (int r = 0; r < group.size; ++r) {
      for (const Part& part : call(r)) {
        if (part.kind == Part::kSend) sent[{r, part.root}].push_back(&part);
      }
    }
    for (int r = 0; r < group.size; ++r) {
      for (const Part& part : call(r)) {
        if (part.kind != Part::kReceive) continue;
        auto& from = sent[{part.root, r}];
        std::memcpy(part.data, from.front()->data, part.n * sizeof(float));
        from.pop_front();
      }
    }
    for (size_t p = 0; p < call(0).size(); ++p) {
      const Part& first = call(0)[p];
      const size_t n = first.n;
      for (size_t i = 0; i < n * group.size; ++i) {
        const bool scatters = first.kind == Part::kReduceScatter;
        if (i >= n && !scatters && first.kind != Part::kAllGather) break;
        const int owner = static_cast<int>(i / std::max<size_t>(n, 1));
        const float total = first.kind == Part::kAllReduce ||
                                    first.kind == Part::kReduce || scatters
                                ? sum(p, i)
                                : 0;
        for (int r = 0; r < group.size; ++r) {
          float* const to = &call(r)[p].data[i];
          switch (first.kind) {
            case Part::kAllReduce:
              *to = total;
              break;
            case Part::kReduce:
              if (r == first.root) *to = total;
              break;
            case Part::kReduceScatter:
              if (r == owner) *to = total;
              break;
            case Part::kAllGather:
              *to = call(owner)[p].data[i];
              break;
            case Part::kBroadcast:
              *to = call(first.root)[p].data[i];
              break;
            default:
              break;
          }
        }
      }
    }
  }
}

void FakeNccl::FailAsync(const std::string& why) {
  absl::MutexLock lock(&mu_);
  async_error_ = why;
}
int FakeNccl::opened() const {
  absl::MutexLock lock(&mu_);
  return opened_;
}
int FakeNccl::aborted() const {
  absl::MutexLock lock(&mu_);
  return aborted_;
}
int FakeNccl::closed() const {
  absl::MutexLock lock(&mu_);
  return closed_;
}
int FakeNccl::live_streams() const {
  absl::MutexLock lock(&mu_);
  return streams_;
}
int FakeNccl::live_events() const {
  absl::MutexLock lock(&mu_);
  return events_;
}

}  // namespace tributary::testing
