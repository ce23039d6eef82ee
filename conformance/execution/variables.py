"""Which variables of the environment a worker is given."""

import re
from collections.abc import Mapping

# Variables that aren't handed to torch and to cases, which need none of them: their names or values are of credentials.
SECRET_NAME = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|AUTH|NETRC|(^|_)KEY(_|$)|APIKEY|PRIVATE|(^|_)(PAT|DSN)$",
    re.IGNORECASE,
)
SECRET_VALUE = re.compile(r"://[^/@\s]+@|-----BEGIN |^(gh[a-z]_|github_pat_|glpat-|sk-|xox[a-z]-|AKIA|eyJ)")
# Nor are those that change what torch's compiler does: cases hold it to what it does by default.
SETTING = re.compile(
    r"TORCHDYNAMO_(?:CAPTURE|SPECIALIZE)_\w+|TORCH_?DYNAMO_(?:\w+_)?DYNAMIC_SHAPES|TORCHDYNAMO_NO_DATA_DEPENDENT_\w+"
    r"|TORCH_COMPILE_OVERRIDE_BACKENDS|TENSORIFY_PYTHON_SCALARS"
)


def handed_on(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a worker is given: whatever comes to run there can read them."""
    return {
        name: value
        for name, value in variables.items()
        if not SECRET_NAME.search(name) and not SECRET_VALUE.search(value) and not SETTING.fullmatch(name)
    }


def settings_kept_back(variables: Mapping[str, str]) -> str:
    """Return in words which variables are not handed on as they change what torch's compiler does, or ""."""
    names = sorted(filter(SETTING.fullmatch, variables))
    return f"not handed to torch, whose compiler is asked by its defaults: {', '.join(names)}" if names else ""
