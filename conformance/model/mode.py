"""The modes in which `--under` runs whole cases, though none of them is to change what autograd does."""

# What each is in force for, and the releases that have it.
MODES = {
    "anomaly": ("autograd.set_detect_anomaly(True)", ">=1.13"),
    "saved-tensor-hooks": ("hooks that pack each saved tensor into a list", ">=1.13"),
    "one-thread": ("autograd.set_multithreading_enabled(False)", ">=2.0"),
    "function-mode": ("a TorchFunctionMode that passes everything on", ">=1.13"),
    "dispatch-mode": ("a TorchDispatchMode that passes everything on", ">=1.13"),
    "profiler": ("autograd.profiler.profile()", ">=1.13"),
    "deterministic": ("torch.use_deterministic_algorithms(True)", ">=1.13"),
    "default-device": ("torch.device() as a context manager, with the target's device", ">=2.0"),
    "no-autocast": ("torch.autocast(enabled=False)", ">=1.13"),
    "sparse-checks": ("torch.sparse.check_sparse_tensor_invariants()", ">=2.0"),
    "module-hooks": ("forward hooks for all modules, which only look", ">=1.13"),
    "dual-level": ("autograd.forward_ad.dual_level(), in which nothing has a tangent", ">=1.13"),
}


def needed_for(mode: str) -> str:
    """Return the condition on the version of torch under which there is a mode: none for one of a user's own."""
    return MODES[mode][1] if mode in MODES else ">=1.13"
