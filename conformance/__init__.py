"""Autograd behaviour conformance suite for PyTorch builds."""

try:
    from conformance._version import version  # written where the package is built or installed
except ImportError:
    version = "0+unknown"

__version__: str = version
