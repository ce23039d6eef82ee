"""Which variables of the environment a worker is given."""

import re
from collections.abc import Mapping

# Variables that aren't handed to torch and to cases, which need none of them: their names or values are of credentials.
SECRET_NAME = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|AUTH|NETRC|(^|_)KEY(_|$)|APIKEY|PRIVATE|(^|_)(PAT|DSN)$",
    re.IGNORECASE,
)
SECRET_VALUE = re.compile(r"://[^/@\s]+@|-----BEGIN |^(gh[a-z]_|github_pat_|glpat-|sk-|xox[a-z]-|AKIA|eyJ)")
# Nor are settings of torch's compiler, and what puts more into messages: cases hold torch to what it does by default.
# Where its cache is is one: what an earlier run has compiled would hide what this build does wrong, or accuse it.
SETTING = re.compile(
    r"(?:TORCH_?DYNAMO|(?:TORCH_?|AOT_?)?INDUCTOR|TORCH_COMPILE|(?:AOT_)?PARTITIONER|TORCH_FAKE_TENSOR|FX)"
    r"_(?!(?:DISABLE|VERBOSE|COMPILE_THREADS|CPP_MARCH|VEC_ISA_OK|RUN_GC_AFTER_COMPILE)$)\w+"
    r"|FAKE_ALLOW_META|TENSORIFY_PYTHON_SCALARS|TORCH_SHOW_CPP_STACKTRACES"
)


def handed_on(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a worker is given: whatever comes to run there can read them."""
    return {
        name: value
        for name, value in variables.items()
        if not SECRET_NAME.search(name) and not SECRET_VALUE.search(value) and not SETTING.fullmatch(name)
    }


def settings_kept_back(variables: Mapping[str, str]) -> str:
    """Return in words which variables are not handed on as they change what torch does, or ""."""
    names = sorted(filter(SETTING.fullmatch, variables))
    return f"not handed to torch, which is asked by its defaults: {', '.join(names)}" if names else ""
