"""The pMSE mechanism: parameters of a sequential model whose rows are hardest to tell from the original."""

from dpsynth_core.mechanisms.pmse.mechanism import PMSE

__all__ = ["PMSE"]
