// The device itself: queue, memory, guard, generators, and the operators that no switch touches.
#include "hostdev.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <ATen/record_function.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <torch/version.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <thread>

#define SINCE(minor) (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= (minor))
#if SINCE(9)
#include <c10/core/CachingDeviceAllocator.h>
#endif

extern "C" void omp_set_num_threads(int);

namespace hostdev {

int64_t setting(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::atoll(text) : otherwise;
}

namespace {

const auto kDevices = static_cast<c10::DeviceIndex>(setting("HOSTDEV_DEVICES", 1));
const auto kMemory = static_cast<size_t>(setting("HOSTDEV_MEMORY", int64_t{8} << 30));
// What it really gives, in all and in one piece, while it tells that kMemory is there.
const auto kQuota = static_cast<size_t>(setting("HOSTDEV_QUOTA", static_cast<int64_t>(kMemory)));
const auto kContext = setting("HOSTDEV_CONTEXT", 0);  // bytes that a process takes by using a device at all
const auto kPiece = static_cast<size_t>(setting("HOSTDEV_PIECE", static_cast<int64_t>(kMemory)));
std::atomic<int64_t> link_rate{setting("HOSTDEV_LINK", 4'000'000'000)};  // bytes/s, 0: at once

// One queue for all devices, so that work on two of them is in order too. Never destroyed: the worker outlives main.
struct Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> jobs;
  uint64_t pushed = 0, done = 0;
  bool held = false, started = false, forked = false;
  std::exception_ptr error;

  uint64_t push(Job job) {
    std::lock_guard lock(mutex);
    TORCH_CHECK(!forked, "hostdev cannot be used in a process forked after its first use");
    if (!started) {
      started = true;
      std::thread([this] { work(); }).detach();
    }
    jobs.push_back(std::move(job));
    changed.notify_all();
    return ++pushed;
  }

  void wait(uint64_t ticket) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done >= ticket; });
    if (auto first = std::exchange(error, nullptr)) {
      std::rethrow_exception(first);
    }
  }

  bool finished(uint64_t ticket) {
    std::lock_guard lock(mutex);
    return done >= ticket;
  }

  void hold(bool yes) {
    std::lock_guard lock(mutex);
    held = yes;
    changed.notify_all();
  }

  void work() {
    at::init_num_threads();
    omp_set_num_threads(1);
    at::RecordFunctionGuard unseen(false);
    at::AutoDispatchBelowADInplaceOrView below;
    for (std::unique_lock lock(mutex);;) {
      changed.wait(lock, [this] { return !held && !jobs.empty(); });
      Job job = std::move(jobs.front());
      jobs.pop_front();
      lock.unlock();
      std::exception_ptr failed;
      try {
        job();
      } catch (...) {
        failed = std::current_exception();
      }
      job = nullptr;
      lock.lock();
      error = error ? error : failed;
      ++done;
      changed.notify_all();
    }
  }
};

Queue& queue() {
  static auto* one = [] {
    pthread_atfork(nullptr, nullptr, [] { queue().forked = queue().started; });
    return new Queue;
  }();
  return *one;
}

}  // namespace

uint64_t launch(Job job) { return queue().push(std::move(job)); }

void run(Job job) {
  std::exception_ptr failed;
  queue().wait(launch([&] {
    try {
      job();
    } catch (...) {
      failed = std::current_exception();
    }
  }));
  if (failed) {
    std::rethrow_exception(failed);
  }
}

void cross_link(size_t bytes) {
  if (const auto rate = link_rate.load(); rate > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(bytes) / static_cast<double>(rate)));
  }
}

namespace {

// Memory is freed by a job, after all that was launched before: no kernel has to keep its tensors alive.
struct Block {
  void* data;
  size_t bytes;
  c10::Device device;
};

std::mutex memory_mutex;
std::vector<size_t> used(kDevices), most(kDevices);
std::map<const void*, size_t> pinned;

// What each process that has used a device holds of it, in a file that they share; without one each is alone.
constexpr size_t kRows = 256, kColumns = 8;
struct Row {
  std::atomic<int64_t> process;
  std::atomic<int64_t> bytes[kColumns];
};

Row* rows() {
  static Row* const shared = []() -> Row* {
    const char* path = std::getenv("HOSTDEV_SHARED");
    if (path == nullptr || *path == '\0') {
      return nullptr;
    }
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    TORCH_CHECK(file >= 0 && ftruncate(file, kRows * sizeof(Row)) == 0 && kDevices <= int(kColumns), "no file ", path);
    void* place = mmap(nullptr, kRows * sizeof(Row), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    TORCH_CHECK(place != MAP_FAILED, "no memory for ", path);
    return static_cast<Row*>(place);
  }();
  return shared;
}

bool lives(int64_t process) { return process != 0 && (kill(static_cast<pid_t>(process), 0) == 0 || errno == EPERM); }

// The row of this process, a fork's own; those of the dead are free.
Row* own_row() {
  static int64_t process = 0;
  static Row* row = nullptr;
  if (rows() == nullptr || process == getpid()) {
    return row;
  }
  for (row = rows(); row != rows() + kRows; ++row) {
    int64_t before = row->process;
    if (!lives(before) && row->process.compare_exchange_strong(before, getpid())) {
      for (auto& bytes : row->bytes) {
        bytes = 0;
      }
      process = getpid();
      return row;
    }
  }
  TORCH_CHECK(false, "more processes than rows");
}

// All that is held of a device; whoever asks or allocates has a context on it from then on.
size_t held(c10::DeviceIndex index) {
  Row* own = own_row();
  if (own == nullptr) {
    return used[index];
  }
  own->bytes[index] = kContext + static_cast<int64_t>(used[index]);
  size_t all = 0;
  for (Row* row = rows(); row != rows() + kRows; ++row) {
    all += lives(row->process) ? static_cast<size_t>(row->bytes[index]) : 0;
  }
  return std::min(all, kMemory);
}

void release(void* context) {
  std::unique_ptr<Block> block(static_cast<Block*>(context));
  std::lock_guard lock(memory_mutex);
  if (block->device.is_cpu()) {
    pinned.erase(block->data);
  } else {
    used[block->device.index()] -= block->bytes;
    held(block->device.index());
  }
  if (!queue().forked) {
    launch([data = block->data] { std::free(data); });
  }
}

c10::DataPtr allocated(size_t bytes, c10::Device device) {
  if (bytes == 0) {
    return {nullptr, device};
  }
  std::lock_guard lock(memory_mutex);
  if (!device.is_cpu()) {
    const auto index = device.index();
    const auto has = held(index) + bytes <= std::min(kMemory, kQuota) && bytes <= kPiece;
    TORCH_CHECK_WITH(OutOfMemoryError, has, "hostdev out of memory. Tried to allocate ",
                     bytes, " bytes; ", kMemory - held(index), " of ", kMemory, " are free on device ",
                     int(index));
    used[index] += bytes;
    held(index);
    most[index] = std::max(most[index], used[index]);
  }
  void* data = nullptr;
  TORCH_CHECK(posix_memalign(&data, 64, bytes) == 0, "the host has no memory for hostdev");
  if (device.is_cpu()) {
    pinned[data] = bytes;
  }
  return {data, new Block{data, bytes, device}, &release, device};
}

thread_local c10::DeviceIndex current = 0;

#if SINCE(9)
using Base = c10::DeviceAllocator;
#else
using Base = c10::Allocator;
#endif

struct Allocator final : Base {
  c10::DataPtr allocate(size_t bytes) override { return allocated(bytes, {kHost, current}); }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    run([=] { std::memcpy(to, from, bytes); });
  }
#if SINCE(9)
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    std::lock_guard lock(memory_mutex);
    stats.allocated_bytes[0].current = stats.reserved_bytes[0].current = static_cast<int64_t>(used[index]);
    stats.allocated_bytes[0].peak = stats.reserved_bytes[0].peak = static_cast<int64_t>(most[index]);
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex index) override { most[index] = used[index]; }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) {
    std::lock_guard lock(memory_mutex);
    return {kMemory - held(index), kMemory};
  }
#endif
};

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override { return allocated(bytes, c10::kCPU); }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

Allocator device_memory;
PinnedAllocator pinned_memory;

bool is_pinned(const void* data) {
  std::lock_guard lock(memory_mutex);
  auto after = pinned.upper_bound(data);
  return after != pinned.begin() && data < static_cast<const char*>((--after)->first) + after->second;
}

struct Event {
  uint64_t ticket = 0;
  std::chrono::steady_clock::time_point at;
};

thread_local std::vector<c10::StreamId> streams(kDevices);  // names alone: all share the queue

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kHost; }
  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device old = getDevice();
    setDevice(device);
    return old;
  }
  c10::Device getDevice() const override { return {kHost, current}; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() < kDevices, "hostdev has ", int(kDevices), " devices, not one of index ",
                int(device.index()));
    uncheckedSetDevice(device);
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    current = device.index() < 0 ? current : device.index();
  }
  c10::Stream getStream(c10::Device device) const noexcept override { return named(streams[index(device)], device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return named(0, device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getNewStream(device, 0); }
  c10::Stream getNewStream(c10::Device device, int) const override {
    static std::atomic<c10::StreamId> last{0};
    return named(++last, device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return named(std::exchange(streams[index(stream.device())], stream.id()), stream.device());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  bool queryStream(const c10::Stream&) const override { return queue().finished(queue().pushed); }
  void synchronizeStream(const c10::Stream&) const override { queue().wait(queue().pushed); }
  void synchronizeDevice(const c10::DeviceIndex) const { queue().wait(queue().pushed); }
  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {
    auto* one = static_cast<Event*>(*event ? *event : *event = new Event);
    one->ticket = launch([one] { one->at = std::chrono::steady_clock::now(); });
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void* event) const override {
    return event == nullptr || queue().finished(static_cast<Event*>(event)->ticket);
  }
  void synchronizeEvent(void* event) const {
    if (event != nullptr) {
      queue().wait(static_cast<Event*>(event)->ticket);
    }
  }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex) const {
    synchronizeEvent(to);
    std::chrono::duration<double, std::milli> took = static_cast<Event*>(to)->at - static_cast<Event*>(from)->at;
    return took.count();
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    launch([event] { delete static_cast<Event*>(event); });
  }

 private:
  static size_t index(c10::Device device) { return device.index() < 0 ? current : device.index(); }
  static c10::Stream named(c10::StreamId id, c10::Device device) {
    return c10::Stream(c10::Stream::UNSAFE, {kHost, static_cast<c10::DeviceIndex>(index(device))}, id);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// A generator of the device draws with one of the CPU's, on the worker and so in the order of the launches.
struct HostGenerator final : c10::GeneratorImpl {
  explicit HostGenerator(c10::DeviceIndex index, at::Generator with = at::detail::createCPUGenerator())
      : GeneratorImpl({kHost, index}, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)), cpu(std::move(with)) {}
  void set_current_seed(uint64_t seed) override { settled().set_current_seed(seed); }
  void set_offset(uint64_t offset) override { settled().set_offset(offset); }
  uint64_t get_offset() const override { return settled().get_offset(); }
  uint64_t current_seed() const override { return settled().current_seed(); }
  uint64_t seed() override { return settled().seed(); }
  void set_state(const c10::TensorImpl& state) override { settled().unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return settled().unsafeGetGeneratorImpl()->get_state();
  }
  c10::GeneratorImpl* clone_impl() const override { return new HostGenerator(device_.index(), settled().clone()); }

  at::Generator cpu;

 private:
  at::Generator settled() const {
    queue().wait(queue().pushed);
    return cpu;
  }
};

at::Generator new_generator(c10::DeviceIndex index) {
  return at::make_generator<HostGenerator>(index < 0 ? current : index);
}

const at::Generator& default_generator(c10::DeviceIndex index) {
  static auto* all = [] {
    auto* made = new std::vector<at::Generator>;
    for (c10::DeviceIndex one = 0; one < kDevices; ++one) {
      made->push_back(new_generator(one));
    }
    return made;
  }();
  return all->at(index < 0 ? current : index);
}

#if !SINCE(9)
REGISTER_GENERATOR_PRIVATEUSE1(new_generator)
#endif

void grow(c10::StorageImpl& storage, size_t bytes) {
  auto fresh = allocated(bytes, storage.device());
  launch([to = fresh.get(), from = storage.data_ptr().get(), kept = std::min(bytes, storage.nbytes())] {
    std::memcpy(to, from, kept);
  });
  storage.set_data_ptr_noswap(std::move(fresh));
  storage.set_nbytes(bytes);
}

// Some of these are `const`, or there at all, only in later torch: hence no `override` on them.
struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const { return true; }
  bool isAvailable() const { return kDevices > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  c10::DeviceIndex getCurrentDevice() const override { return current; }
  void setCurrentDevice(c10::DeviceIndex index) const override { Guard().setDevice({kHost, index}); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return Guard().exchangeDevice({kHost, index}).index();
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchangeDevice(index); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) { return default_generator(index); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index = -1) const { return new_generator(index); }
  at::Device getDeviceFromPtr(void*) const override { return {kHost, current}; }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory; }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    grow(*storage.unsafeGetStorageImpl(), bytes);
  }
};

const bool registered = [] {
  c10::SetAllocator(kHost, &device_memory);
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

}  // namespace

at::Generator cpu_generator(const at::Generator& generator) {
  const auto& given = generator.defined() ? generator : default_generator(-1);
  TORCH_CHECK(given.device().type() == kHost, "Expected a '", c10::DeviceTypeName(kHost, true),
              "' device type for generator but found '", given.device(), "'");
  return static_cast<HostGenerator*>(given.unsafeGetGeneratorImpl())->cpu;
}

at::Tensor alias(const at::Tensor& tensor) {
  // Resizable, as some kernels use their output for a larger intermediate result: it then gets memory of its own.
  auto same = at::for_blob(const_cast<void*>(tensor.const_data_ptr()), tensor.sizes())
                  .strides(tensor.strides())
                  .options(at::TensorOptions(tensor.scalar_type()).device(c10::kCPU))
                  .resizeable_storage()
                  .allocator(c10::GetAllocator(c10::kCPU))
                  .make_tensor();
  same.unsafeGetTensorImpl()->_set_conj(tensor.is_conj());
  same.unsafeGetTensorImpl()->_set_neg(tensor.is_neg());
  return same;
}

void resize(const at::Tensor& tensor, at::IntArrayRef sizes) {
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(sizes);
  const auto bytes =
      at::detail::computeStorageNbytesContiguous(sizes, tensor.element_size(), impl->storage_offset());
  if (bytes > impl->storage().nbytes()) {
    grow(*impl->storage().unsafeGetStorageImpl(), bytes);
  }
}

namespace {

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_strided_generic(sizes, strides, &device_memory,
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           type.value_or(at::typeMetaToScalarType(c10::get_default_dtype())));
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  return at::detail::empty_generic(sizes, &device_memory, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   type.value_or(at::typeMetaToScalarType(c10::get_default_dtype())), format);
}

bool on_host(const at::Tensor& tensor) { return tensor.device().is_cpu(); }

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const auto source = on_host(from) ? from : alias(from), target = on_host(to) ? to : alias(to);
  const bool crosses = on_host(from) || on_host(to);
  const auto& host = on_host(from) ? from : to;
  const bool waits = crosses && !(non_blocking && is_pinned(host.const_data_ptr()));
  // A job that nobody waits for owns no tensor of the host: its last reference would need the interpreter's lock.
  auto job = [source = waits ? source : alias(source), target = waits ? target : alias(target), crosses] {
    cross_link(crosses ? source.nbytes() : 0);
    target.copy_(source);
  };
  waits ? run(job) : void(launch(job));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) {
    resize(to, from.sizes());
  }
  return copy_from(from, to, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  at::Tensor host = at::detail::empty_cpu(self.sizes(), self.scalar_type());
  copy_from(self, host, false);
  return at::native::_local_scalar_dense_cpu(host);
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  resize(self, sizes);
  if (format) {
    self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return self;
}

at::Tensor& set_storage_offset(at::Tensor& self, at::Storage storage, int64_t offset, at::IntArrayRef sizes,
                               at::IntArrayRef strides) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  if (strides.empty() && !sizes.empty()) {
    impl->set_storage_offset(offset);
    impl->set_sizes_contiguous(sizes);
  } else {
    impl->set_sizes_and_strides(sizes, strides, offset);
  }
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage storage) {
  const auto length = static_cast<int64_t>(storage.nbytes() / self.element_size());
  return set_storage_offset(self, std::move(storage), 0, {length}, {1});
}

at::Tensor& set_empty(at::Tensor& self) {
  return set_storage(self, c10::Storage(c10::Storage::use_byte_size_t(), 0, allocated(0, self.device()),
                                        &device_memory, true));
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& from) {
  return set_storage_offset(self, from.storage(), from.storage_offset(), from.sizes(), from.strides());
}

}  // namespace

at::Tensor empty_like(const at::Tensor& shape, c10::Device device) {
  return empty_strided(shape.sizes(), shape.strides(), shape.scalar_type(), {}, device, {});
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("unfold", at::native::unfold);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
  m.impl("resize_", resize_);
  m.impl("set_", set_empty);
  m.impl("set_.source_Storage", set_storage);
  m.impl("set_.source_Storage_storage_offset", set_storage_offset);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_local_scalar_dense", local_scalar_dense);
}

}  // namespace hostdev

extern "C" {
int hostdev_devices() { return hostdev::kDevices; }
int hostdev_device() { return hostdev::current; }
void hostdev_set_device(int device) { hostdev::current = static_cast<c10::DeviceIndex>(device); }
void hostdev_hold(int yes) { hostdev::queue().hold(yes != 0); }
void hostdev_link(int64_t rate) { hostdev::link_rate = rate; }
int64_t hostdev_memory(int device, int free) {
  std::lock_guard lock(hostdev::memory_mutex);
  hostdev::used.at(device);
  const auto held = free != 0 ? hostdev::held(static_cast<c10::DeviceIndex>(device)) : 0;
  return static_cast<int64_t>(hostdev::kMemory - held);
}
void hostdev_seed(int64_t seed) {
  for (c10::DeviceIndex one = 0; one < hostdev::kDevices; ++one) {
    hostdev::default_generator(one).unsafeGetGeneratorImpl()->set_current_seed(seed);
  }
}
}
