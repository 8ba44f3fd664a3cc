// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <nccl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/host/cuda_ops.h"
#include "kernels/cuda/host/cuda_status.h"
#include "kernels/nccl_api.h"
#include "kernels/nccl_arithmetic.h"

namespace tributary {
namespace {

static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));

// Tried in this order: by name, then in the CUDA toolkit of the build.
constexpr const char* kLibraries[] = {
    "libnccl.so.2",
    TRIBUTARY_CUDA_LIBRARY_DIR "/libnccl.so.2",
};
// NCCL 2.14 introduced non-blocking communicators.
constexpr int kOldestVersion = NCCL_VERSION(2, 14, 0);

// The functions of the library, by NCCL's names.
struct NcclLibrary {
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) init_rank_config;
  decltype(&ncclCommGetAsyncError) get_async_error;
  decltype(&ncclCommFinalize) finalize;
  decltype(&ncclCommDestroy) destroy;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclGetErrorString) error_string;
  decltype(&ncclGetLastError) last_error;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclReduce) reduce;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) recv;

  // Returns an empty string, or why NCCL cannot be used. The library stays
  // open: unloading CUDA libraries is not supported.
  std::string Load();
};

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

std::string NcclLibrary::Load() {
  void* library = nullptr;
  for (const char* name : kLibraries) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) return "NCCL cannot be opened (libnccl.so.2 wanted)";
  if (!Find(library, "ncclGetVersion", &get_version) ||
      !Find(library, "ncclGetUniqueId", &get_unique_id) ||
      !Find(library, "ncclCommInitRankConfig", &init_rank_config) ||
      !Find(library, "ncclCommGetAsyncError", &get_async_error) ||
      !Find(library, "ncclCommFinalize", &finalize) ||
      !Find(library, "ncclCommDestroy", &destroy) ||
      !Find(library, "ncclCommAbort", &abort) ||
      !Find(library, "ncclGetErrorString", &error_string) ||
      !Find(library, "ncclGetLastError", &last_error) ||
      !Find(library, "ncclGroupStart", &group_start) ||
      !Find(library, "ncclGroupEnd", &group_end) ||
      !Find(library, "ncclAllReduce", &all_reduce) ||
      !Find(library, "ncclReduce", &reduce) ||
      !Find(library, "ncclReduceScatter", &reduce_scatter) ||
      !Find(library, "ncclAllGather", &all_gather) ||
      !Find(library, "ncclBroadcast", &broadcast) ||
      !Find(library, "ncclSend", &send) || !Find(library, "ncclRecv", &recv)) {
    return std::string("NCCL lacks a function, 2.14 is wanted: ") + dlerror();
  }
  int version = 0;
  if (get_version(&version) != ncclSuccess || version < kOldestVersion) {
    return "NCCL is too old: wanted 2.14, got version " +
           std::to_string(version);
  }
  return "";
}

// Identifies a machine as NCCL does: by its boot ID, or by NCCL_HOSTID if set.
// Two processes with different NCCL_HOSTIDs may share a device, as a test of
// two ranks on one device needs.
std::string MachineId() {
  const char* const given = std::getenv("NCCL_HOSTID");
  if (given != nullptr && *given != '\0') return given;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

class CudaNccl final : public NcclApi {
 public:
  CudaNccl(const NcclLibrary& library, CudaOps* ops)
      : nccl_(library), ops_(ops) {}
  ~CudaNccl() override {
    UseDevice();
    if (ops_done_ != nullptr) cudaEventDestroy(ops_done_);
  }

  bool Start(std::string* why_not) {
    char bus[32] = "";
    if (Cuda(cudaDeviceGetPCIBusId(bus, sizeof(bus), ops_->device())) ==
            Code::kFailed ||
        Cuda(cudaSetDevice(ops_->device())) == Code::kFailed ||
        Cuda(cudaEventCreateWithFlags(&ops_done_, cudaEventDisableTiming)) ==
            Code::kFailed) {
      *why_not = LastError(nullptr);
      return false;
    }
    device_id_ = MachineId() + "/" + bus;
    return true;
  }

  std::string device_id() const override { return device_id_; }

  Code NewId(NcclId* id) override {
    ncclUniqueId made;
    const Code code = Nccl(nccl_.get_unique_id(&made));
    std::memcpy(id->data(), &made, sizeof(made));
    return code;
  }

  Code Connect(int size, const NcclId& id, int rank, Comm* comm) override {
    ncclUniqueId unique;
    std::memcpy(&unique, id.data(), sizeof(unique));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t made = nullptr;
    UseDevice();
    const Code code =
        Nccl(nccl_.init_rank_config(&made, size, unique, rank, &config));
    *comm = made;
    return code;
  }

  Code State(Comm comm) override {
    ncclResult_t state = ncclSuccess;
    const Code asked = Nccl(nccl_.get_async_error(Of(comm), &state));
    return asked == Code::kFailed ? asked : Nccl(state);
  }
  Code Finalize(Comm comm) override {
    UseDevice();
    return Nccl(nccl_.finalize(Of(comm)));
  }
  void Destroy(Comm comm) override {
    UseDevice();
    nccl_.destroy(Of(comm));
  }
  void Abort(Comm comm) override {
    UseDevice();
    nccl_.abort(Of(comm));
  }
  std::string LastError(Comm comm) override {
    std::string text = error_;
    const char* more = comm == nullptr ? "" : nccl_.last_error(Of(comm));
    if (more != nullptr && *more != '\0') text += std::string(": ") + more;
    return text;
  }

  Code BeginGroup() override { return Nccl(nccl_.group_start()); }
  Code EndGroup() override { return Nccl(nccl_.group_end()); }

  Code AllReduce(float* data, size_t n, Comm comm, Stream stream) override {
    return Nccl(nccl_.all_reduce(data, data, n, ncclFloat32, ncclSum, Of(comm),
                                 On(stream)));
  }
  Code Reduce(float* data, size_t n, int root, Comm comm,
              Stream stream) override {
    return Nccl(nccl_.reduce(data, data, n, ncclFloat32, ncclSum, root,
                             Of(comm), On(stream)));
  }
  Code ReduceScatter(float* data, size_t n, int rank, Comm comm,
                     Stream stream) override {
    return Nccl(nccl_.reduce_scatter(data, data + n * rank, n, ncclFloat32,
                                     ncclSum, Of(comm), On(stream)));
  }
  Code AllGather(float* data, size_t n, int rank, Comm comm,
                 Stream stream) override {
    return Nccl(nccl_.all_gather(data + n * rank, data, n, ncclFloat32,
                                 Of(comm), On(stream)));
  }
  Code Broadcast(float* data, size_t n, int root, Comm comm,
                 Stream stream) override {
    return Nccl(nccl_.broadcast(data, data, n, ncclFloat32, root, Of(comm),
                                On(stream)));
  }
  Code Send(const float* data, size_t n, int to, Comm comm,
            Stream stream) override {
    return Nccl(nccl_.send(data, n, ncclFloat32, to, Of(comm), On(stream)));
  }
  Code Receive(float* data, size_t n, int from, Comm comm,
               Stream stream) override {
    return Nccl(nccl_.recv(data, n, ncclFloat32, from, Of(comm), On(stream)));
  }

  Code NewStream(Stream* stream) override {
    UseDevice();
    cudaStream_t made = nullptr;
    const Code code =
        Cuda(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    *stream = made;
    return code;
  }
  void FreeStream(Stream stream) override {
    UseDevice();
    cudaStreamDestroy(On(stream));
  }
  Code FollowOps(Stream stream) override {
    UseDevice();
    const Code code = Cuda(cudaEventRecord(ops_done_, ops_->stream()));
    return code == Code::kFailed
               ? code
               : Cuda(cudaStreamWaitEvent(On(stream), ops_done_, 0));
  }
  Code NewEvent(Event* event) override {
    UseDevice();
    cudaEvent_t made = nullptr;
    const Code code =
        Cuda(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
    *event = made;
    return code;
  }
  void FreeEvent(Event event) override {
    UseDevice();
    cudaEventDestroy(static_cast<cudaEvent_t>(event));
  }
  Code Record(Event event, Stream stream) override {
    UseDevice();
    return Cuda(cudaEventRecord(static_cast<cudaEvent_t>(event), On(stream)));
  }
  Code Query(Event event) override {
    UseDevice();
    const cudaError_t error = cudaEventQuery(static_cast<cudaEvent_t>(event));
    if (error != cudaErrorNotReady) return Cuda(error);
    // "Not ready" is an answer, not a fault, but CUDA keeps it as the last
    // error, which the thread's next launch would report.
    cudaGetLastError();
    return Code::kInProgress;
  }

 private:
  static ncclComm_t Of(Comm comm) { return static_cast<ncclComm_t>(comm); }
  static cudaStream_t On(Stream stream) {
    return static_cast<cudaStream_t>(stream);
  }
  // CUDA calls go to the thread's current device. A thread that never set one
  // would create a context on the first device, which takes hundreds of
  // megabytes.
  void UseDevice() { cudaSetDevice(ops_->device()); }

  Code Nccl(ncclResult_t result) {
    if (result == ncclSuccess) return Code::kDone;
    if (result == ncclInProgress) return Code::kInProgress;
    error_ = std::string("NCCL: ") + nccl_.error_string(result);
    return Code::kFailed;
  }
  Code Cuda(cudaError_t error) {
    if (error == cudaSuccess) return Code::kDone;
    error_ = CudaStatus(error).message();
    return Code::kFailed;
  }

  const NcclLibrary& nccl_;
  CudaOps* const ops_;
  cudaEvent_t ops_done_ = nullptr;
  std::string device_id_;
  std::string error_;  // the last error
};

// The library, or nullptr with the reason.
const NcclLibrary* OpenLibrary(std::string* why_not) {
  static NcclLibrary library;
  static const std::string lacking = library.Load();
  *why_not = lacking;
  return lacking.empty() ? &library : nullptr;
}

// NCCL's settings: the environment, which comes first for NCCL too, and files.
std::vector<std::string> NcclSettings() {
  std::vector<std::string> settings;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    settings.emplace_back(*variable);
  }
  const char* const home = std::getenv("HOME");
  for (const std::string& path :
       {std::string(home == nullptr ? "" : home) + "/.nccl.conf",
        std::string("/etc/nccl.conf")}) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) settings.push_back(line);
  }
  return settings;
}

// One character for each two devices of the machine: CUDA's rank of the speed
// between them, or x if they reach each other only through the host.
std::string Links() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  std::string links;
  for (int from = 0; from < devices; ++from) {
    for (int to = from + 1; to < devices; ++to) {
      int reached = 0, rank = 0;
      const bool known =
          cudaDeviceGetP2PAttribute(&reached, cudaDevP2PAttrAccessSupported,
                                    from, to) == cudaSuccess &&
          cudaDeviceGetP2PAttribute(&rank, cudaDevP2PAttrPerformanceRank, from,
                                    to) == cudaSuccess;
      links += known && reached != 0 ? std::to_string(rank) : "x";
    }
  }
  cudaGetLastError();  // the next launch must not report it
  return links;
}

}  // namespace

std::unique_ptr<NcclApi> OpenNccl(Ops* ops, std::string* why_not) {
  if (ops->is_host()) {
    *why_not = "NCCL is for CUDA devices";
    return nullptr;
  }
  const NcclLibrary* const library = OpenLibrary(why_not);
  if (library == nullptr) return nullptr;
  auto api = std::make_unique<CudaNccl>(*library, static_cast<CudaOps*>(ops));
  return api->Start(why_not) ? std::move(api) : nullptr;
}

std::string NcclArithmeticOf(const Ops& ops) {
  std::string why_not;
  int version = 0;
  const NcclLibrary* const library =
      ops.is_host() ? nullptr : OpenLibrary(&why_not);
  if (library == nullptr || library->get_version(&version) != ncclSuccess) {
    return "";
  }
  return DescribeNccl(version, NcclSettings(), Links());
}

}  // namespace tributary
