// The operators with a switch: what runs in each of its places, the truth about what ran, and the faults.
#include "hostdev.h"

#include <ATen/EmptyTensor.h>
#include <ATen/record_function.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <thread>

namespace hostdev {
namespace {

using c10::DispatchKey;
using Values = std::vector<c10::IValue>;

std::mutex counts_mutex;
std::map<std::string, Count> counts;

// Whether a variable, a list with commas, names the operator with or without its overload.
bool listed(const char* variable, const Operator& op) {
  const char* text = std::getenv(variable);
  std::istringstream names(text != nullptr ? text : "");
  for (std::string one; std::getline(names, one, ',');) {
    if (one == op.schema().name() || one == c10::toString(op.operator_name())) {
      return true;
    }
  }
  return false;
}

void allocate_without_end() {
  for (constexpr size_t kBlock = size_t{64} << 20;;) {
    std::memset(::operator new(kBlock), 1, kBlock);
  }
}

bool on_device(const at::Tensor& tensor) { return tensor.device().type() == kHost; }

using Change = std::function<at::Tensor(const at::Tensor&, bool written)>;

c10::IValue changed(const c10::IValue& value, bool written, const Change& change) {
  if (value.isTensor()) {
    return value.toTensor().defined() ? change(value.toTensor(), written) : value;
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> all;
    for (const at::Tensor& one : value.toTensorVector()) {
      all.push_back(change(one, written));
    }
    return all;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> all;
    for (const std::optional<at::Tensor>& one : value.toOptionalTensorVector()) {
      all.push_back(one && one->defined() ? std::optional(change(*one, written)) : one);
    }
    return all;
  }
  return value;
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// The arguments for a call on another device: each tensor changed, the device and the generator replaced.
Stack arguments(const Operator& op, const Values& given, c10::DeviceType device, const Change& change) {
  Stack stack;
  for (size_t at = 0; at < given.size(); ++at) {
    const auto& argument = op.schema().arguments()[at];
    if (given[at].isDevice()) {
      stack.emplace_back(at::Device(device));
    } else if (c10::GeneratorType::get()->isSubtypeOf(*argument.type())) {
      TORCH_CHECK(given[at].isNone() || setting("HOSTDEV_REFUSE_GENERATOR", 0) == 0, op.schema().name(),
                  " of this device takes no generator");
      auto cpu = cpu_generator(given[at].isNone() ? at::Generator() : given[at].toGenerator());
      stack.push_back(device == c10::kCPU ? c10::IValue(cpu) : c10::IValue());
    } else {
      stack.push_back(changed(given[at], is_written(argument), change));
    }
  }
  return stack;
}

struct Call {
  Operator op;
  Values given;
  std::vector<at::Tensor> written;
  c10::Device device{kHost, 0};
  size_t bytes = 0;
  Count& count;
  bool wrong;

  Call(const Operator& of, Stack* stack) : op(of), count(begun(of)), wrong(listed("HOSTDEV_WRONG", of)) {
    given = torch::jit::pop(*stack, op.schema().arguments().size());
    bool found = false;
    each([&](const at::Tensor& tensor, bool is_written) {
      if (is_written) {
        written.push_back(tensor);
      }
      if (on_device(tensor)) {
        device = found ? device : tensor.device();
        found = true;
        bytes += tensor.nbytes();
      }
      return tensor;
    });
    for (const auto& one : given) {
      device = !found && one.isDevice() ? one.toDevice() : device;
    }
  }

  void each(const Change& change) const {
    for (size_t at = 0; at < given.size(); ++at) {
      changed(given[at], is_written(op.schema().arguments()[at]), change);
    }
  }

  // Puts the results on the stack: what was written is an argument, what is new is taken from `fresh` in order.
  void finish(Stack* stack, const Values& fresh) const {
    size_t next = 0;
    for (const auto& result : op.schema().returns()) {
      if (!is_written(result)) {
        stack->push_back(fresh.at(next++));
        continue;
      }
      for (size_t at = 0; at < given.size(); ++at) {
        const auto* info = op.schema().arguments()[at].alias_info();
        if (info != nullptr && info->beforeSets() == result.alias_info()->beforeSets()) {
          stack->push_back(given[at]);
        }
      }
    }
  }

  Values fresh(const Stack& results) const {
    Values all;
    for (size_t at = 0; at < results.size(); ++at) {
      if (!is_written(op.schema().returns()[at])) {
        all.push_back(results[at]);
      }
    }
    return all;
  }
};

bool is_number(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl()->is_wrapped_number(); }

// Numbers do not promote types as tensors do: the mark goes along.
at::Tensor numbered(at::Tensor same, const at::Tensor& tensor) {
  if (is_number(tensor)) {
    same.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  return same;
}

at::Tensor meta(const at::Tensor& tensor) {
  return numbered(at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(), tensor.scalar_type()), tensor);
}

// What a job may hold of an argument: the device's bytes, or the host's value as it is now.
at::Tensor captured(const at::Tensor& tensor) {
  if (on_device(tensor)) {
    return alias(tensor);
  }
  return numbered(tensor.clone(), tensor);
}

// What the meta kernel says of a call: its results, and `written` in the shapes that they get.
struct Shapes {
  Stack results;
  std::vector<at::Tensor> written;
};

std::optional<Shapes> shapes(const Call& call) {
  Shapes found;
  try {
    found.results = arguments(call.op, call.given, c10::kMeta, [&](const at::Tensor& tensor, bool is_written) {
      auto same = is_number(tensor) ? captured(tensor) : meta(tensor);
      if (is_written) {
        found.written.push_back(same);
      }
      return same;
    });
    call.op.redispatchBoxed(c10::DispatchKeySet(DispatchKey::Meta), &found.results);
  } catch (const std::exception&) {
    return std::nullopt;  // a shape that depends on values, or a call that the CPU's kernel will refuse too
  }
  const bool all = std::all_of(found.results.begin(), found.results.end(),
                               [](const auto& one) { return one.isTensor() || one.isTensorList(); });
  return all ? std::optional(found) : std::nullopt;
}

// A meta kernel in Python takes milliseconds, a launch must not: the same question is asked once.
const std::optional<Shapes>& known_shapes(const Call& call) {
  static thread_local std::map<std::string, std::optional<Shapes>> known;
  std::ostringstream question;
  question << call.op.operator_name();
  for (const auto& one : call.given) {
    const bool of_tensors = one.isTensor() || one.isTensorList() || one.isOptionalTensorList();
    of_tensors ? question << ';' : question << ';' << one;
    changed(one, false, [&](const at::Tensor& tensor, bool) {
      question << tensor.scalar_type() << tensor.sizes() << tensor.strides() << is_number(tensor);
      return tensor;
    });
  }
  auto place = known.find(question.str());
  if (place == known.end()) {
    place = known.emplace(question.str(), shapes(call)).first;
  }
  return place->second;
}

void spoil(const std::vector<at::Tensor>& results) {
  for (const auto& one : results) {
    if (one.numel() > 0) {
      auto first = one.as_strided({}, {}, one.storage_offset());
      one.scalar_type() == at::kBool ? first.logical_not_() : first.add_(1);
      return;
    }
  }
}

std::vector<at::Tensor> tensors(const Values& values) {
  std::vector<at::Tensor> all;
  for (const auto& one : values) {
    changed(one, false, [&](const at::Tensor& tensor, bool) {
      all.push_back(tensor);
      return tensor;
    });
  }
  return all;
}

void call_cpu(const Operator& op, Stack* stack) { op.redispatchBoxed(c10::DispatchKeySet(DispatchKey::CPU), stack); }

Values like(const Values& results, c10::Device device) {
  Values all;
  for (const auto& one : results) {
    all.push_back(changed(one, false, [&](const at::Tensor& tensor, bool) { return empty_like(tensor, device); }));
  }
  return all;
}

// A kernel as a device has it: shapes first, then the launch, and the caller has its tensors before the work is done.
void launched(const Call& call, const Stack& results, Stack* stack) {
  const auto fresh = like(call.fresh(results), call.device);
  std::vector<at::Tensor> targets, written, used;
  auto aliased = arguments(call.op, call.given, c10::kCPU, [&](const at::Tensor& tensor, bool is_written) {
    auto same = captured(tensor);
    if (is_written) {
      used.push_back(same);
    }
    return same;
  });
  for (const auto& one : tensors(fresh)) {
    targets.push_back(alias(one));
  }
  for (const auto& one : call.written) {
    written.push_back(alias(one));
  }
  launch([=, op = call.op, count = &call.count, wrong = call.wrong] {
    Stack values = aliased;
    call_cpu(op, &values);
    const auto made = targets.empty() ? targets : tensors(values);
    for (size_t at = 0; at < targets.size(); ++at) {
      TORCH_CHECK(targets[at].sizes() == made.at(at).sizes(), op.schema().name(), ": meta and CPU differ in shape");
      targets[at].copy_(made[at]);
    }
    for (size_t at = 0; at < used.size(); ++at) {
      if (used[at].const_data_ptr() != written[at].const_data_ptr()) {
        written[at].copy_(used[at]);
      }
    }
    if (wrong) {
      spoil(targets.empty() ? written : targets);
    }
    ++count->native;
  });
  call.finish(stack, fresh);
}

// A kernel that waits: for a shape that depends on the values, or (`raw`) since it goes over the host behind all backs.
void waited(const Call& call, bool raw, Stack* stack) {
  auto aliased = arguments(call.op, call.given, c10::kCPU, [](const at::Tensor& one, bool) { return captured(one); });
  std::vector<at::Tensor> copies;
  Values results;
  run([&] {
    cross_link(raw ? call.bytes : 0);
    Stack values;
    for (size_t at = 0; at < aliased.size(); ++at) {
      const bool written = is_written(call.op.schema().arguments()[at]);
      values.push_back(changed(aliased[at], written, [&](const at::Tensor& tensor, bool) {
        const bool cloned = written || (raw && !is_number(tensor));
        auto used = cloned ? tensor.clone() : tensor;
        if (written) {
          copies.push_back(used);
        }
        return used;
      }));
    }
    call_cpu(call.op, &values);
    results = call.fresh(values);
    if (call.wrong) {
      spoil(results.empty() ? copies : tensors(results));
    }
  });
  const auto fresh = like(results, call.device);
  auto sources = copies, targets = call.written;
  for (size_t at = 0; at < copies.size(); ++at) {
    if (targets[at].sizes() != copies[at].sizes()) {
      resize(targets[at], copies[at].sizes());
    }
  }
  const auto made = tensors(results), places = tensors(fresh);
  sources.insert(sources.end(), made.begin(), made.end());
  targets.insert(targets.end(), places.begin(), places.end());
  run([&] {
    for (size_t at = 0; at < sources.size(); ++at) {
      cross_link(raw ? sources[at].nbytes() : 0);
      alias(targets[at]).copy_(sources[at]);
    }
  });
  ++(raw ? call.count.cpu : call.count.native);
  call.finish(stack, fresh);
}

void native(const Operator& op, Stack* stack) {
  const at::RecordFunctionGuard unseen(false);
  const Call call(op, stack);
  const c10::DeviceGuard guard(call.device);
  if (op.schema().name().back() == '_') {
    return launched(call, {}, stack);
  }
  const auto& known = known_shapes(call);
  if (!known) {
    return waited(call, false, stack);
  }
  for (size_t at = 0; at < call.written.size(); ++at) {
    if (call.written[at].sizes() != known->written[at].sizes()) {
      resize(call.written[at], known->written[at].sizes());
    }
    if (call.written[at].numel() == 0) {
      return waited(call, false, stack);  // a meta kernel may leave the shape of an output to the real one
    }
  }
  launched(call, known->results, stack);
}

void hidden_raw(const Operator& op, Stack* stack) {
  const at::RecordFunctionGuard unseen(false);
  const Call call(op, stack);
  const c10::DeviceGuard guard(call.device);
  waited(call, true, stack);
}

void hidden_copy(const Operator& op, Stack* stack) {
  const Call call(op, stack);
  std::vector<at::Tensor> copies;
  Stack values = arguments(op, call.given, c10::kCPU, [&](const at::Tensor& tensor, bool is_written) {
    auto used = on_device(tensor) ? tensor.cpu() : tensor;
    if (is_written) {
      copies.push_back(used);
    }
    return used;
  });
  op.callBoxed(&values);
  for (size_t at = 0; at < copies.size(); ++at) {
    if (call.written[at].sizes() != copies[at].sizes()) {
      call.written[at].resize_(copies[at].sizes());
    }
    call.written[at].copy_(copies[at]);
  }
  Values fresh;
  for (const auto& one : call.fresh(values)) {
    fresh.push_back(changed(one, false, [&](const at::Tensor& made, bool) { return made.to(call.device); }));
  }
  ++call.count.cpu;
  call.finish(stack, fresh);
}

// A kernel of C++ is registered with the schema inferred from its types; the dispatcher's table shows it.
std::unique_ptr<c10::FunctionSchema> inferred(const c10::FunctionSchema& schema) {
  const auto bare = [](const std::vector<c10::Argument>& all) {
    std::vector<c10::Argument> types;
    for (const auto& one : all) {
      types.emplace_back("_" + std::to_string(types.size()), one.type(), one.real_type());
    }
    return types;
  };
  const auto real = schema.cloneWithRealTypes(false);
  return std::make_unique<c10::FunctionSchema>("", "", bare(real.arguments()), bare(real.returns()));
}

c10::RegistrationHandleRAII registered_as(const Operator& op, c10::KernelFunction kernel) {
  return c10::Dispatcher::singleton().registerImpl(op.operator_name(), DispatchKey::PrivateUse1, std::move(kernel),
                                                   std::nullopt, inferred(op.schema()),
                                                   c10::str("registered at ", __FILE__, ":", __LINE__));
}

struct Switch {
  std::string place;
  std::unique_ptr<torch::Library> fallback;
  std::optional<c10::RegistrationHandleRAII> kernel;
};

std::map<std::string, Switch> switches;
std::unique_ptr<torch::Library> everywhere;

Operator find(const std::string& name) {
  const auto dot = name.find('.');
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.substr(0, dot).c_str(),
                                                        dot == std::string::npos ? "" : name.c_str() + dot + 1);
}

void turn(const std::string& name, const std::string& place) {
  const auto op = find(name);
  auto& one = switches[name];
  one = Switch{place, nullptr, std::nullopt};
  if (place == "native") {
    one.kernel = registered_as(op, c10::KernelFunction::makeFromBoxedFunction<&native>());
  } else if (place == "hidden_copy") {
    one.kernel = registered_as(op, c10::KernelFunction::makeFromBoxedFunction<&hidden_copy>());
  } else if (place == "hidden_raw") {
    one.kernel = registered_as(op, c10::KernelFunction::makeFromBoxedFunction<&hidden_raw>());
  } else if (place == "fallback") {
    one.fallback = fallback_of(name);
  } else {
    TORCH_CHECK(place == "missing", "no such place of a switch: ", place);
  }
}

// Whether a backend needs a kernel of its own: the CPU has one, nothing composite stands in, and tensors come out.
bool is_leaf(const Operator& op) {
  const auto& schema = op.schema();
  for (const char* other : {"sparse", "mkldnn", "quantize", "nested", "_test_", "_foobar", "jagged"}) {
    if (schema.name().find(other) != std::string::npos) {
      return false;
    }
  }
  for (auto key : {DispatchKey::PrivateUse1, DispatchKey::CompositeExplicitAutograd,
                   DispatchKey::CompositeExplicitAutogradNonFunctional, DispatchKey::CompositeImplicitAutograd}) {
    if (op.hasKernelForDispatchKey(key)) {
      return false;
    }
  }
  bool takes = false, gives = true;
  for (const auto& one : schema.arguments()) {
    takes = takes || one.type()->str().find("Tensor") != std::string::npos;
  }
  for (const auto& one : schema.returns()) {
    gives = gives && (one.alias_info() == nullptr || is_written(one)) &&
            (one.type()->str().find("Tensor") != std::string::npos || schema.name() == "aten::equal");
  }
  return takes && gives && schema.name().rfind("aten::", 0) == 0;
}

const bool turned_on = [] {
  for (const auto& name : c10::Dispatcher::singleton().getRegistrationsForDispatchKey(DispatchKey::CPU)) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (op && is_leaf(*op)) {
      turn(c10::toString(name), "native");
    }
  }
  return true;
}();

// Runs what C calls: text for C, or the message of what was thrown after an exclamation mark.
template <class Body>
const char* said(Body body) {
  static thread_local std::string text;
  try {
    text = body();
  } catch (const std::exception& error) {
    text = std::string("!") + error.what();
  }
  return text.c_str();
}

}  // namespace

Count& begun(const Operator& op) {
  if (listed("HOSTDEV_SEGFAULT", op)) {
    std::raise(SIGSEGV);
  }
  if (listed("HOSTDEV_HANG", op)) {
    launch([] { std::this_thread::sleep_for(std::chrono::hours(24 * 365)); });
  }
  if (listed("HOSTDEV_ALLOCATE", op)) {
    allocate_without_end();
  }
  std::lock_guard lock(counts_mutex);
  auto& count = counts[c10::toString(op.operator_name())];
  ++count.launched;
  return count;
}

}  // namespace hostdev

extern "C" {
const char* hostdev_turn(const char* name, const char* place) {
  return hostdev::said([&] {
    hostdev::turn(name, place);
    return "";
  });
}
const char* hostdev_everywhere(int yes) {
  return hostdev::said([&] {
    hostdev::everywhere = yes != 0 ? hostdev::fallback_of_all() : nullptr;
    return "";
  });
}
const char* hostdev_synchronize() {
  return hostdev::said([] {
    hostdev::run([] {});
    return "";
  });
}
const char* hostdev_switches() {
  return hostdev::said([] {
    std::ostringstream text;
    for (const auto& [name, one] : hostdev::switches) {
      text << name << ' ' << one.place << '\n';
    }
    return text.str();
  });
}
const char* hostdev_truth() {
  return hostdev::said([] {
    std::lock_guard lock(hostdev::counts_mutex);
    std::ostringstream text;
    for (const auto& [name, one] : hostdev::counts) {
      text << name << ' ' << one.launched << ' ' << one.native << ' ' << one.cpu << '\n';
    }
    return text.str();
  });
}
void hostdev_forget() {
  std::lock_guard lock(hostdev::counts_mutex);
  for (auto& [name, one] : hostdev::counts) {
    one.launched = one.native = one.cpu = 0;
  }
}
}
