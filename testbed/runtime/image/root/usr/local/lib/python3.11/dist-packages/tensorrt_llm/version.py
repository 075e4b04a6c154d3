"""The release that this package plays."""

__version__ = "1.1.0"
