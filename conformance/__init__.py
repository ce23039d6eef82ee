"""Autograd behaviour conformance suite for PyTorch builds."""

__version__ = "0.1.0"
