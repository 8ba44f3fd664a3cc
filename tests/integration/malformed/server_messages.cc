// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/header_checksum.h"
#include "tests/integration/malformed/malformed.h"

namespace tributary::testing {
namespace {

using absl::StatusCode;

constexpr char kParameterService[] = "/tributary.v1.ParameterService/";

void SetPayload(v1::PushPullRequest* push, std::string payload) {
  push->set_crc32c(Crc32c(payload.data(), payload.size()));
  push->set_payload(std::move(payload));
}

void SetElement(v1::PushPullRequest* push, size_t at, float value) {
  std::string payload = push->payload();
  payload.replace(at * sizeof(value), sizeof(value),
                  reinterpret_cast<const char*>(&value), sizeof(value));
  SetPayload(push, payload);
}

}  // namespace

std::string Spoil(std::string bytes, std::mt19937& random) {
  switch (random() % 4) {
    case 0:  // truncated
      bytes.resize(random() % (bytes.size() + 1));
      break;
    case 1:  // flipped bits, mostly in the header
      for (uint32_t i = 0; i <= random() % 2 && !bytes.empty(); ++i) {
        const size_t end =
            random() % 2 ? std::min<size_t>(64, bytes.size()) : bytes.size();
        char& byte = bytes[random() % end];
        byte = static_cast<char>(byte ^ 1 << random() % 8);
      }
      break;
    case 2: {  // a field length of 2^28 to 2^63 bytes
      std::string field(1, static_cast<char>((random() % 15 + 1) << 3 | 2));
      field.append(4 + random() % 5, '\xff');
      bytes.insert(random() % (bytes.size() + 1), field + '\x07');
      break;
    }
    default:
      bytes.resize(random() % 300);
      for (char& byte : bytes) byte = static_cast<char>(random());
  }
  return bytes;
}

ServerMessages::ServerMessages(v1::Plan plan, v1::PushPullRequest repeated,
                               uint32_t seed)
    : plan_(std::move(plan)), repeated_(std::move(repeated)), random_(seed) {}

Malformed ServerMessages::Next() {
  switch (random_() % 4) {
    case 0:
      return WrongPush();
    case 1:
      return WrongOther();
    case 2:
      return {absl::StrCat(kParameterService, "PushPull"),
              Spoil(repeated_.SerializeAsString(), random_)};
    default: {
      const char* const methods[] = {"PushPull",   "Pull",
                                     "Initialize", "ReadStatistics",
                                     "ReadClock",  "GetServerStatus"};
      return {absl::StrCat(kParameterService, methods[random_() % 6]),
              Spoil(std::string(random_() % 100, 'x'), random_)};
    }
  }
}

v1::BlockAddress ServerMessages::WrongAddress(Malformed* message) {
  v1::BlockAddress address = repeated_.address();
  const uint32_t far = 1 + random_() % 1000;
  switch (random_() % 5) {
    case 0:
      address.set_job_id(plan_.job_id() + far);
      message->code = StatusCode::kFailedPrecondition;
      message->piece = absl::StrCat("this server has job ", plan_.job_id());
      break;
    case 1:
      address.set_plan_epoch(plan_.epoch() - 1);
      message->code = StatusCode::kFailedPrecondition;
      message->piece = absl::StrCat("plan epoch ", plan_.epoch());
      break;
    case 2:
      address.set_plan_epoch(plan_.epoch() + far);
      message->code = StatusCode::kUnavailable;
      message->piece = "and waits for the new one";
      break;
    case 3:
      address.set_shard(address.shard() + far);
      message->code = StatusCode::kInvalidArgument;
      message->piece =
          absl::StrCat("call for shard ", address.shard(), " at the server of ",
                       repeated_.address().shard());
      break;
    default:
      address.set_block(1 + far);
      message->code = StatusCode::kInvalidArgument;
      message->piece = absl::StrCat("block ", address.block(), " of shard ");
  }
  return address;
}

Malformed ServerMessages::WrongPush() {
  Malformed message{absl::StrCat(kParameterService, "PushPull"), "",
                    StatusCode::kInvalidArgument, ""};
  v1::PushPullRequest push = repeated_;
  const size_t size = push.payload().size();
  const uint32_t far = 1 + random_() % 1000;
  const auto refused = [&message](StatusCode code, std::string piece) {
    message.code = code;
    message.piece = std::move(piece);
  };
  switch (random_() % 11) {
    case 0:
      push.set_rank(plan_.num_workers() - 1 + far);
      refused(StatusCode::kInvalidArgument,
              absl::StrCat("wanted below ", plan_.num_workers()));
      break;
    case 1: {
      constexpr int64_t kFar[] = {INT64_MIN, -1, int64_t{1} << 53, INT64_MAX};
      push.set_step(kFar[far % 4]);
      refused(StatusCode::kOutOfRange, "wanted 0 or more and below");
      break;
    }
    case 2:
      push.set_step(repeated_.step() + 1 + far);
      refused(StatusCode::kOutOfRange,
              absl::StrCat("the open step is ", repeated_.step() + 2));
      break;
    case 3:  // another shape, or bfloat16
      SetPayload(&push, std::string(far % 2 ? size / 2 : size + far, '\0'));
      refused(StatusCode::kInvalidArgument, absl::StrCat("wanted ", size));
      break;
    case 4:
      push.set_samples(0);
      refused(StatusCode::kInvalidArgument, "with 0 samples, wanted 0");
      break;
    case 5:
      push.set_crc32c(push.crc32c() ^ far);
      refused(StatusCode::kDataLoss, "was damaged on the way");
      break;
    case 6: {
      const size_t at = random_() % (size / sizeof(float));
      SetElement(&push, at, far % 2 ? NAN : -INFINITY);
      refused(
          StatusCode::kInvalidArgument,
          absl::StrCat("is not finite in \"",
                       plan_.parameters(1 - repeated_.address().shard()).name(),
                       "\", element ", at));
      break;
    }
    case 7:
      push.set_base_version(-static_cast<int64_t>(far));
      refused(StatusCode::kInvalidArgument, "base_version -");
      break;
    case 9:
      push.add_learning_rates(far % 2 ? NAN : -1);
      refused(StatusCode::kInvalidArgument, "wanted finite rates of 0 or more");
      break;
    case 8:  // changed after the header was signed
      push.set_samples(push.samples() ^ 1 << far % 20);
      refused(StatusCode::kDataLoss, "the header of a PushPullRequest was");
      message.bytes = push.SerializeAsString();
      return message;
    default:
      *push.mutable_address() = WrongAddress(&message);
  }
  SignHeader(&push);
  message.bytes = push.SerializeAsString();
  return message;
}

Malformed ServerMessages::WrongOther() {
  Malformed message;
  const auto set = [&message](const char* method, auto request) {
    SignHeader(&request);
    message.method = absl::StrCat(kParameterService, method);
    message.bytes = request.SerializeAsString();
  };
  const auto refused = [&message](StatusCode code, const char* piece) {
    message.code = code;
    message.piece = piece;
  };
  switch (random_() % 6) {
    case 0: {
      v1::PullRequest pull;
      *pull.mutable_address() = WrongAddress(&message);
      set("Pull", pull);
      break;
    }
    case 1: {
      v1::PullRequest pull;
      *pull.mutable_address() = repeated_.address();
      pull.set_exact(true);
      refused(StatusCode::kOutOfRange, "version 0 of shard ");
      set("Pull", pull);
      break;
    }
    case 2: {
      v1::ClockRequest clock;
      *clock.mutable_address() = repeated_.address();
      clock.set_rank(plan_.num_workers() + random_() % 9);
      refused(StatusCode::kInvalidArgument, ", wanted below ");
      set("ReadClock", clock);
      break;
    }
    case 3: {
      v1::InitializeRequest initialize;
      *initialize.mutable_address() = repeated_.address();
      initialize.set_payload(std::string(random_() % 1000, 'x'));
      initialize.set_crc32c(
          Crc32c(initialize.payload().data(), initialize.payload().size()));
      refused(StatusCode::kInvalidArgument, "initial weights of ");
      set("Initialize", initialize);
      break;
    }
    case 4: {
      v1::StatisticsRequest statistics;
      statistics.set_job_id(plan_.job_id());
      statistics.set_plan_epoch(plan_.epoch());
      statistics.set_shard(repeated_.address().shard());
      statistics.set_phase(static_cast<v1::StatisticsPhase>(4));
      refused(StatusCode::kInvalidArgument, "wanted 1 to 3");
      set("ReadStatistics", statistics);
      break;
    }
    default:
      message.method = absl::StrCat(kParameterService, "GetServerStatus");
      message.bytes = "\x0a";  // field 1 of 70,000 bytes
      message.bytes += "\xf0\xa2\x04" + std::string(70'000, 'x');
      refused(StatusCode::kDataLoss, "at most 65536");
  }
  return message;
}

}  // namespace tributary::testing
