"""The rules for which a plain probe sees something else on CUDA than on the CPU, and why; cases have to hold on both.

Each probe was run on a CUDA card and on the CPU of one build; those of all other rules gave the same there.
"""

from __future__ import annotations

# The message of an error or a repr names the device, or the type of a tensor such as torch.cuda.FloatTensor.
NAMED = (
    "ckpt.determinism-check",
    "create.repr-invalid-grad-fn",
    "create.repr-shows-grad-fn",
    "detach.shares-version-counter",
    "func.mark-dirty-invalidates-saved",
    "func.saved-input-inplace-detected",
    "gradattr.assign-device-mismatch",
    "hook.device-of-grad",
    "hook.wrong-dtype-return-error",
    "infer.inplace-invalidates-saved",
    "inplace.base-modified-view-saved-error",
    "inplace.constant-operand-modified-error",
    "inplace.disjoint-view-also-invalid",
    "inplace.error-message-shape",
    "inplace.saved-input-modified-error",
    "inplace.saved-output-modified-error",
    "mode.inplace-under-no-grad-bumps-version",
    "optim.step-after-forward-invalidates",
    "sparse.embedding-max-norm-inplace",
    "version.increment-triggers-check",
)
# The probe made a tensor on the CPU; a case makes it on its device.
PLACED = (
    "hook.wrong-size-return-error",
    "layout.contract-default-restride",
    "promo.scalar-cpu-tensor-with-device",
    "sthook.pack-any-object",
)
# Autocast has to be asked for on the device.
AUTOCAST = ("promo.autocast-weight-grad-fp32",)
# An array needs memory of the host: the cases are for the CPU alone.
HOST_MEMORY = ("create.numpy-no-grad-ok", "create.numpy-requires-grad-error", "create.numpy-resolve-conj-error")
