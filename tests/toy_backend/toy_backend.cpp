// A device that lives outside PyTorch: "toy", whose memory is the host's and whose kernels are the CPU's.
//
// What makes a device is here and real: an allocator, a guard, hooks, kernels that make tensors, views and copies,
// under the dispatch key PrivateUse1. All that computes goes through PyTorch's own boxed fallback, which copies the
// arguments to the CPU and the results back. Autograd is PyTorch's; nothing here knows of it.
//
// Two shortcomings are on purpose: the operators in MISSING have no kernel, nor has any sparse one; and with
// TOY_FAULT=1 in the environment the derivative of sigmoid() is wrong, with TOY_FAULT=2 mul() refuses operands that are
// not contiguous. TOY_WORDS=1 gives the missing operators a kernel that says "error 17" and nothing else.
// TOY_DELAY=1000 makes it a slow device: each operator and each copy, from or to the host too, takes 1000 microseconds
// longer.
//
// Others are those of real devices. TOY_LIKE=mps: there is no float64 and no complex128. TOY_LIKE=cuda: an index that is
// out of range is noticed only when the host waits for the device, which answers nothing after that. TOY_LIKE=vulkan:
// results in double precision have the digits of single precision. With each, the operands of an operator must be on one
// device. TOY_MEMORY=1000000: the device has 1000000 bytes.

#include <ATen/EmptyTensor.h>
#include <ATen/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/_native_batch_norm_legit.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/tril_indices.h>
#include <ATen/ops/triu_indices.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>

namespace {

using at::IntArrayRef;
using at::Tensor;
using std::optional;

constexpr auto TOY = c10::DeviceType::PrivateUse1;
const c10::Device DEVICE(TOY, 0);  // there is one
const c10::DispatchKeySet KEYS(c10::DispatchKey::PrivateUse1);

// Operators that this device lacks, with all their overloads and in-place forms.
const std::set<std::string> MISSING = {
    "aten::_fft_r2c", "aten::_linalg_solve_ex", "aten::_linalg_svd", "aten::bernoulli", "aten::complex",
    "aten::cumsum",   "aten::erfinv",           "aten::linalg_qr",   "aten::median",    "aten::multinomial",
    "aten::polar",    "aten::sort",
};

// Operators whose other operands may be in host memory; those of copies are looked at elsewhere.
const std::set<std::string> MIXED = {
    "aten::_ctc_loss", "aten::_index_put_impl_", "aten::_pack_padded_sequence", "aten::index", "aten::index_put_",
};

// Operators whose result is the host's, which waits for it.
const std::set<std::string> WAITING = {"aten::_local_scalar_dense", "aten::equal", "aten::nonzero"};

bool has(const char* variable, const char* wanted) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string(value) == wanted;
}

// ---------------------------------------------------------------------------------------------------------- errors

std::atomic<bool> has_asserted = false;  // an index was out of range, which the host doesn't know yet
std::atomic<bool> is_lost = false;       // now it does

constexpr auto LATE = "toy: an assertion failed on the device; an earlier operation was given an index out of range";

void check_device() { TORCH_CHECK(!is_lost, LATE); }

extern "C" __attribute__((visibility("default"))) const char* toy_wait() {
  is_lost = is_lost || has_asserted;
  return is_lost ? LATE : nullptr;
}

void wait_for_device() {
  toy_wait();
  check_device();
}

void check_dtype(c10::ScalarType dtype) {
  static const bool is_narrow = has("TOY_LIKE", "mps");
  const bool is_wide = dtype == c10::kDouble || dtype == c10::kComplexDouble;
  TORCH_CHECK_TYPE(!is_narrow || !is_wide, dtype == c10::kDouble ? "float64" : "complex128",
                   " is not supported on the toy device, which computes in single precision");
}

// ---------------------------------------------------------------------------------------------------------- memory

// Hands out host memory that is labelled as the device's. Its size stands before it.
struct Memory final : c10::Allocator {
  static constexpr size_t BEFORE = 64;  // as much as the alignment
  static std::atomic<size_t> used;

  c10::DataPtr allocate(size_t bytes) override {
    check_device();
    if (bytes == 0) {
      return {nullptr, nullptr, &free, DEVICE};
    }
    static const char* size = std::getenv("TOY_MEMORY");
    const size_t all = size == nullptr ? SIZE_MAX : std::strtoull(size, nullptr, 10);
    TORCH_CHECK_WITH(OutOfMemoryError, bytes <= all && used <= all - bytes, "toy out of memory: ", bytes,
                     " bytes are wanted, and ", used, " of ", all, " are in use");
    auto* start = static_cast<char*>(c10::alloc_cpu(bytes + BEFORE));
    std::memcpy(start, &bytes, sizeof bytes);
    used += bytes;
    return {start + BEFORE, start + BEFORE, &free, DEVICE};
  }
  static void free(void* data) {
    if (data != nullptr) {
      auto* start = static_cast<char*>(data) - BEFORE;
      size_t bytes;
      std::memcpy(&bytes, start, sizeof bytes);
      used -= bytes;
      c10::free_cpu(start);
    }
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};
std::atomic<size_t> Memory::used = 0;

// Hands out nothing: for tensors that are known to be zero, which autograd uses where there is no gradient.
struct Nothing final : c10::Allocator {
  static void forget(void*) {}
  c10::DataPtr allocate(size_t) override { return {nullptr, nullptr, &forget, DEVICE}; }
  c10::DeleterFnPtr raw_deleter() const override { return &forget; }
  void copy_data(void*, const void*, size_t) const override {}
};

Memory memory;
Nothing nothing;
REGISTER_ALLOCATOR(TOY, &memory)

// ------------------------------------------------------------------------------------- what PyTorch asks a device

// There is one device with one stream, on which everything happens at once.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return TOY; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Device getDevice() const override { return DEVICE; }
  c10::Device exchangeDevice(c10::Device device) const override { return setDevice(device), DEVICE; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.type() == TOY && device.index() <= 0, "there is only toy:0, not ", device);
  }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, DEVICE); }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

// Some of these override nothing in older releases.
struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const { return true; }
  bool isAvailable() const { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const { return true; }
  c10::DeviceIndex deviceCount() const { return 1; }
  c10::DeviceIndex getCurrentDevice() const { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const { return 0; }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    at::native::resize_bytes_cpu(storage.unsafeGetStorageImpl(), bytes);
  }
};
const bool hooked = (at::RegisterPrivateUse1HooksInterface(new Hooks), true);

// --------------------------------------------------------------------------------------------------------- kernels

// Takes the time of an operator; those that it is made of take none.
struct Operation {
  Operation() {
    check_device();
    static const char* delay = std::getenv("TOY_DELAY");
    if (depth++ == 0 && delay != nullptr) {
      std::this_thread::sleep_for(std::chrono::microseconds(std::atoi(delay)));
    }
  }
  ~Operation() { --depth; }
  static bool is_inside() { return depth > 0; }
  static thread_local int depth;
};
thread_local int Operation::depth = 0;

using Dtype = optional<c10::ScalarType>;
using Layout = optional<c10::Layout>;
using Place = optional<c10::Device>;
using Pinned = optional<bool>;

Tensor empty(IntArrayRef size, Dtype dtype, Layout, Place, Pinned, optional<c10::MemoryFormat> format) {
  check_dtype(c10::dtype_or_default(dtype));
  return at::detail::empty_generic(size, &memory, KEYS, c10::dtype_or_default(dtype), format);
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, Dtype dtype, Layout, Place, Pinned) {
  check_dtype(c10::dtype_or_default(dtype));
  return at::detail::empty_strided_generic(size, stride, &memory, KEYS, c10::dtype_or_default(dtype));
}

Tensor efficient_zeros(IntArrayRef size, Dtype dtype, Layout, Place, Pinned) {
  check_dtype(c10::dtype_or_default(dtype));
  const auto keys = KEYS.add(c10::DispatchKey::ZeroTensor);
  return at::detail::empty_generic(size, &nothing, keys, c10::dtype_or_default(dtype), std::nullopt);
}

Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset, Dtype dtype, Layout, Place, Pinned) {
  return at::tril_indices(rows, columns, offset, c10::dtype_or_default(dtype)).to(DEVICE);
}

Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset, Dtype dtype, Layout, Place, Pinned) {
  return at::triu_indices(rows, columns, offset, c10::dtype_or_default(dtype)).to(DEVICE);
}

// Returns a CPU tensor on the same memory.
Tensor on_host(const Tensor& tensor) {
  if (tensor.is_cpu()) {
    return tensor;
  }
  auto host = at::from_blob(
      tensor.data_ptr(), tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU).requires_grad(false));
  host._set_conj(tensor.is_conj());
  host._set_neg(tensor.is_neg());
  return host;
}

Tensor& copy_(Tensor& self, const Tensor& from, bool) {
  if (self.is_cpu() && !Operation::is_inside()) {
    wait_for_device();
  }
  const Operation operation;
  if (from._is_zerotensor()) {
    return self.zero_();
  }
  on_host(self).copy_(on_host(from));
  return self;
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool) {
  Tensor self = to;
  return copy_(self, from, false);
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  const Operation operation;
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

Tensor& set_to_nothing(Tensor& self) {
  const c10::Storage storage(c10::Storage::use_byte_size_t(), 0, &memory, /*resizable=*/true);
  return at::native::set_storage_cpu_(self, storage, 0, {0}, {});
}

// The derivative of s = sigmoid(x) is s (1 - s); the fault leaves the second factor out.
Tensor sigmoid_backward(const Tensor& grad, const Tensor& output) {
  const Operation operation;
  static const char* fault = std::getenv("TOY_FAULT");
  const bool wrong = fault != nullptr && std::string(fault) == "1";
  const Tensor slope = wrong ? output : at::mul(output, at::rsub(output, 1));
  return at::mul(grad, slope.conj());
}

// A convolution on a device of no known kind ends up here.
Tensor convolution(const Tensor& input, const Tensor& weight, const optional<Tensor>& bias, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                   int64_t groups) {
  const Operation operation;
  optional<Tensor> host_bias;
  if (bias.has_value() && bias->defined()) {
    host_bias = on_host(*bias);
  }
  return at::convolution(on_host(input), on_host(weight), host_bias, stride, padding, dilation, transposed,
                         output_padding, groups)
      .to(DEVICE);
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                                        IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                                        bool transposed, IntArrayRef output_padding, int64_t groups,
                                                        std::array<bool, 3> wanted) {
  const Operation operation;
  const int64_t bias_size = transposed ? weight.size(1) * groups : weight.size(0);
  auto found = at::convolution_backward(on_host(grad), on_host(input), on_host(weight), IntArrayRef(bias_size), stride,
                                        padding, dilation, transposed, output_padding, groups, wanted);
  const auto here = [](const Tensor& tensor) { return tensor.defined() ? tensor.to(DEVICE) : tensor; };
  return {here(std::get<0>(found)), here(std::get<1>(found)), here(std::get<2>(found))};
}

// The schema of this one doesn't say that the running statistics are written to; that of the other one does.
std::tuple<Tensor, Tensor, Tensor> batch_norm(const Tensor& input, const optional<Tensor>& weight,
                                              const optional<Tensor>& bias, const optional<Tensor>& mean,
                                              const optional<Tensor>& variance, bool training, double momentum,
                                              double epsilon) {
  const Operation operation;
  if (!mean.has_value() || !mean->defined()) {
    return at::_native_batch_norm_legit(input, weight, bias, training, momentum, epsilon);
  }
  Tensor means = *mean, variances = *variance;
  return at::_native_batch_norm_legit(input, weight, bias, means, variances, training, momentum, epsilon);
}

c10::IValue to_device(const c10::IValue& value) {
  if (value.isTensor() && value.toTensor().is_cpu()) {
    return value.toTensor().to(DEVICE);
  }
  if (value.isTensorList()) {
    c10::List<Tensor> moved;
    for (const Tensor& tensor : value.toTensorVector()) {
      moved.push_back(tensor.is_cpu() ? tensor.to(DEVICE) : tensor);
    }
    return moved;
  }
  return value;
}

void refuse(const c10::OperatorHandle&, torch::jit::Stack*) { throw std::runtime_error("error 17"); }

// The tensors among the arguments of an operator.
std::vector<Tensor> operands_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  std::vector<Tensor> found;
  for (const auto& value : torch::jit::last(stack, op.schema().arguments().size())) {
    if (value.isTensor()) {
      found.push_back(value.toTensor());
    } else if (value.isTensorList()) {
      const auto several = value.toTensorVector();
      found.insert(found.end(), several.begin(), several.end());
    }
  }
  return found;
}

// A number in host memory is no operand: its value is passed on.
void check_places(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  bool on_device = false, on_host = false;
  for (const Tensor& tensor : operands_of(op, stack)) {
    on_device |= tensor.defined() && tensor.device().type() == TOY;
    on_host |= tensor.defined() && tensor.is_cpu() && tensor.dim() > 0;
  }
  TORCH_CHECK(!on_device || !on_host || MIXED.count(op.schema().name()) != 0, op.schema().name(),
              ": the operands are on two devices, toy:0 and cpu");
}

// Runs an operator. What integers it is given is seen by the device alone, and the host isn't told before it waits; the
// results are some numbers.
void with_late_errors(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (WAITING.count(op.schema().name()) != 0) {
    wait_for_device();
  }
  torch::jit::Stack again(*stack);
  try {
    at::native::cpu_fallback(op, stack);
  } catch (const c10::Error&) {
    for (auto& value : again) {
      if (value.isTensor() && value.toTensor().defined() && value.toTensor().scalar_type() == c10::kLong) {
        value = at::zeros_like(value.toTensor());
      } else if (value.isOptionalTensorList()) {  // indices
        c10::List<optional<Tensor>> zeros;
        for (const optional<Tensor>& each : value.toOptionalTensorVector()) {
          zeros.push_back(each.has_value() && each->scalar_type() == c10::kLong ? at::zeros_like(*each) : each);
        }
        value = zeros;
      }
    }
    bool is_late = true;
    try {
      at::native::cpu_fallback(op, &again);
    } catch (const c10::Error&) {
      is_late = false;
    }
    if (!is_late) {
      throw;
    }
    has_asserted = true;
    *stack = again;
  }
}

void round_to_single(const at::Tensor& result) {
  if (result.scalar_type() == c10::kDouble || result.scalar_type() == c10::kComplexDouble) {
    result.copy_(result.to(result.is_complex() ? c10::kComplexFloat : c10::kFloat));
  }
}

// Runs an operator on the CPU. PyTorch's fallback leaves results there when the first operand is, such as a number.
void on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const Operation operation;
  static const bool refuses_strides = has("TOY_FAULT", "2");
  if (refuses_strides && op.schema().name() == "aten::mul") {
    const auto& operand = torch::jit::peek(*stack, 0, op.schema().arguments().size());
    if (operand.isTensor() && !operand.toTensor().is_contiguous()) {
      refuse(op, stack);
    }
  }
  static const bool is_strict = std::getenv("TOY_LIKE") != nullptr, is_late = has("TOY_LIKE", "cuda");
  if (is_strict) {
    check_places(op, *stack);
  }
  is_late ? with_late_errors(op, stack) : at::native::cpu_fallback(op, stack);
  static const bool is_single = has("TOY_LIKE", "vulkan");
  const auto& returned = op.schema().returns();
  for (size_t i = 0; i < returned.size(); ++i) {
    auto& value = torch::jit::peek(*stack, i, returned.size());
    if (is_single && value.isTensor() && value.toTensor().defined()) {
      round_to_single(value.toTensor());
    }
    if (returned[i].alias_info() == nullptr) {
      value = to_device(value);
    }
  }
}

std::string without_underscore(const std::string& name) {
  return name.back() == '_' ? name.substr(0, name.size() - 1) : name;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("_efficientzerotensor", TORCH_FN(efficient_zeros));
  m.impl("tril_indices", TORCH_FN(tril_indices));
  m.impl("triu_indices", TORCH_FN(triu_indices));
  m.impl("copy_", TORCH_FN(copy_));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("convolution_overrideable", TORCH_FN(convolution));
  m.impl("convolution_backward_overrideable", TORCH_FN(convolution_backward));
  m.impl("native_batch_norm", TORCH_FN(batch_norm));
  m.impl("sigmoid_backward", TORCH_FN(sigmoid_backward));

  // These look at sizes, strides and storages only, or move what is in host memory, wherever it belongs.
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  m.impl("is_set_to", TORCH_FN(at::native::is_set_to));
  m.impl("resize_", TORCH_FN(at::native::resize_));
  m.impl("set_", TORCH_FN(set_to_nothing));
  m.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  m.impl("set_.source_Storage", TORCH_FN(at::native::set_));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(at::native::set_storage_cpu_));

  // Whatever else the CPU has a kernel for. A fallback for the whole key would hide what is missing.
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findOp(name);
    const bool is_missing = MISSING.count(without_underscore(name.name)) != 0;
    if (name.name.rfind("aten::", 0) == 0 && (!is_missing || has("TOY_WORDS", "1")) && op && op->hasSchema() &&
        op->hasKernelForDispatchKey(c10::DispatchKey::CPU) &&
        !op->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) {
      m.impl(c10::toString(name).c_str(), is_missing ? torch::CppFunction::makeFromBoxedFunction<&refuse>()
                                                     : torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
    }
  }
}

}  // namespace
