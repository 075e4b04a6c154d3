"""What can go wrong while an image is built."""


class ImageBuildError(RuntimeError):
    """An image can't be built; the message names the step and the remedy."""


class ToolMissingError(ImageBuildError):
    """A program that the build needs is not installed and could not be installed."""
