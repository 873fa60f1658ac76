"""Diagnose whether a machine is fit to serve or benchmark a large language model."""

__version__ = "0.1.0"
