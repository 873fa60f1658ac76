// The two boxed ways to the CPU that a vendor registers: of one operator, and of all that have no kernel.
#include "hostdev.h"

#include <ATen/native/CPUFallback.h>

namespace hostdev {
namespace {

void to_cpu(const Operator& op, Stack* stack) {
  auto& count = begun(op);
  at::native::cpu_fallback(op, stack);
  ++count.cpu;
}

}  // namespace

// TORCH_LIBRARY_IMPL makes the same object with the same arguments.
std::unique_ptr<torch::Library> fallback_of(const std::string& name) {
  auto library = std::make_unique<torch::Library>(
      torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library->impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&to_cpu>());
  return library;
}

std::unique_ptr<torch::Library> fallback_of_all() {
  auto library =
      std::make_unique<torch::Library>(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library->fallback(torch::CppFunction::makeFromBoxedFunction<&to_cpu>());
  return library;
}

}  // namespace hostdev
