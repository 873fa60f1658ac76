// A device of the host's own memory and one worker thread: what its three source files share.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <functional>
#include <memory>
#include <string>

namespace hostdev {

constexpr auto kHost = c10::DeviceType::PrivateUse1;
using Job = std::function<void()>;
using Stack = torch::jit::Stack;
using Operator = c10::OperatorHandle;

// device.cpp
int64_t setting(const char* variable, int64_t otherwise);
uint64_t launch(Job job);           // puts the job into the queue and returns its ticket at once
void run(Job job);                  // the same, and waits; an error of the job is thrown here
void cross_link(size_t bytes);      // sleeps for as long as the bytes take; the worker calls it
at::Tensor alias(const at::Tensor& tensor);  // the same bytes as a CPU tensor, for jobs alone
void resize(const at::Tensor& tensor, at::IntArrayRef sizes);
at::Tensor empty_like(const at::Tensor& shape, c10::Device device);
at::Generator cpu_generator(const at::Generator& generator);  // of the default one where undefined

// kernels.cpp
struct Count {
  std::atomic<int64_t> launched{0}, native{0}, cpu{0};
};
Count& begun(const Operator& op);  // counts a launch and does the faults asked for by the environment

// fallback.cpp
std::unique_ptr<torch::Library> fallback_of(const std::string& name);
std::unique_ptr<torch::Library> fallback_of_all();

}  // namespace hostdev
