"""The error tree of the inference library."""


class InferenceError(Exception):
    """Root of all errors that a user of this library may want to catch."""


class ModelFilesError(InferenceError):
    """A model directory is incomplete or says something this library can't run."""


class PairMismatchError(InferenceError):
    """A draft can't serve this target: their shapes or vocabularies differ."""


class SequenceTooLongError(InferenceError):
    """More positions were asked for than the model was made for."""
