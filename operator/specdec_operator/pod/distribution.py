"""What the image's Python says of its distributions."""


def distribution_version(name: str) -> str:
    """The installed version, with the suffix of its build; empty if there is none."""
    from importlib import metadata  # noqa: PLC0415 - it brings email and zipfile, and most pods ask for none

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
