"""A worker is given no credentials, and nothing that changes what torch's compiler does or what errors say."""

import pytest

from conformance.execution.variables import handed_on, settings_kept_back


@pytest.mark.parametrize(
    "name",
    "GITHUB_TOKEN HF_TOKEN token AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID OPENAI_API_KEY DB_PASSWORD PGPASSWORD "
    "SSH_AUTH_SOCK GOOGLE_APPLICATION_CREDENTIALS SSH_PRIVATE_KEY SENTRY_DSN GITLAB_PAT NETRC SESSION_COOKIE "
    "STRIPE_APIKEY".split(),
)
def test_a_worker_gets_no_variable_that_is_named_like_a_credential(name: str) -> None:
    assert handed_on({name: "x", "PATH": "/bin"}) == {"PATH": "/bin"}


@pytest.mark.parametrize(
    "value", ["https://me:word@host/simple", "redis://word@host", "ghp_0123", "-----BEGIN X", "eyJ4IjogMX0="]
)
def test_a_worker_gets_no_variable_that_holds_a_credential(value: str) -> None:
    assert handed_on({"INDEX": value}) == {}


def test_what_drivers_and_libraries_read_is_handed_on() -> None:
    given = {
        "PYTHONPATH": "/a", "LD_LIBRARY_PATH": "/b", "CUDA_VISIBLE_DEVICES": "0", "TOKENIZERS_PARALLELISM": "false",
        "XLA_FLAGS": "--x", "NPU_HOME": "/c", "PWD": "/d", "KEYBOARD": "us", "PROXY": "http://host:80/",
    }  # fmt: skip
    assert handed_on(given) == given


def test_settings_of_the_compiler_are_kept_back_and_said() -> None:
    kept_back = {
        "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS": "1", "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_SHAPES": "0",
        "TORCHDYNAMO_DYNAMIC_SHAPES": "0", "TORCH_COMPILE_OVERRIDE_BACKENDS": "eager", "INDUCTOR_ORIG_FX_SVG": "1",
        "TORCHDYNAMO_SUPPRESS_ERRORS": "1", "TORCHDYNAMO_PREPARE_FREEZING": "1", "TORCH_COMPILE_DEBUG": "1",
        "TORCHINDUCTOR_KEEP_OUTPUT_STRIDE": "0", "TORCH_FAKE_TENSOR_DEBUG": "1", "TORCH_SHOW_CPP_STACKTRACES": "1",
        "TORCHINDUCTOR_CACHE_DIR": "/a",
    }  # fmt: skip
    given = {
        "TORCHDYNAMO_VERBOSE": "1", "TORCHDYNAMO_DISABLE": "1", "TORCH_LOGS": "+all",
        "TORCH_COMPILE_DISABLE": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_VEC_ISA_OK": "0",
        "TORCH_DYNAMO_RUN_GC_AFTER_COMPILE": "0",
    }  # fmt: skip
    assert handed_on({**kept_back, **given}) == given
    told = settings_kept_back({**kept_back, **given})
    assert told.partition(": ")[2].split(", ") == sorted(kept_back)
    assert settings_kept_back(given) == ""
