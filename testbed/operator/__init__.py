"""The operator itself on a testbed's cluster, with the rights that it ships with: in this process, its own or a pod."""

from testbed.operator.in_process import InProcessOperator, operator_in_process
from testbed.operator.install import install, operator_kubeconfig
from testbed.operator.job_player import Ending, JobPlayer, Script, cut, fails, succeeds
from testbed.operator.process import OperatorProcess
from testbed.operator.prover import ScriptedProver
from testbed.operator.release import OperatorRelease

__all__ = [
    "Ending",
    "InProcessOperator",
    "JobPlayer",
    "OperatorProcess",
    "OperatorRelease",
    "Script",
    "ScriptedProver",
    "cut",
    "fails",
    "install",
    "operator_in_process",
    "operator_kubeconfig",
    "succeeds",
]
