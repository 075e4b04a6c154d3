"""The release that this package plays."""  # noqa: INP001 - lies over the package below

__version__ = "1.2.1"
