"""What the stand-ins refuse; the messages are shaped like the original's, so that the same log reading finds them."""


class SimulatorError(RuntimeError):
    """The stand-in refuses what the original would refuse, or can't do what the original does."""


class NoGPUError(SimulatorError):
    """The program needs a GPU and the container was given none."""


class CheckpointError(SimulatorError):
    """A model or checkpoint directory can't be converted or built."""


class EngineError(SimulatorError):
    """An engine directory can't be loaded here."""


class ParameterError(SimulatorError):
    """A model's config.pbtxt or model.yaml says something that the original refuses."""


class RequestError(SimulatorError):
    """A request that the original answers with an error."""


class RankError(SimulatorError):
    """MPI ranks don't fit the models' participant ids, or a rank went away."""
