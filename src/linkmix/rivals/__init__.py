"""The methods that the paper compares with or builds on, all with the same interface."""

from linkmix.rivals.cop_kmeans import COPKMeans
from linkmix.rivals.csc import CSC
from linkmix.rivals.e2cp import E2CP
from linkmix.rivals.itml import ITML
from linkmix.rivals.linkage import ConstrainedLinkage
from linkmix.rivals.mixtures import EMPC, GMM, GMMEC, GMPR, PPC, SoftChunkletMixture
from linkmix.rivals.mmc import MMC
from linkmix.rivals.mpc_kmeans import MPCKMeans
from linkmix.rivals.pc_kmeans import PCKMeans
from linkmix.rivals.pccc import PCCC
from linkmix.rivals.rca import RCA
from linkmix.rivals.spectral import SpectralRBF
from linkmix.rivals.sskk import SSKK

__all__ = [
    "CSC",
    "E2CP",
    "EMPC",
    "GMM",
    "GMMEC",
    "GMPR",
    "ITML",
    "MMC",
    "PCCC",
    "PPC",
    "RCA",
    "SSKK",
    "COPKMeans",
    "ConstrainedLinkage",
    "MPCKMeans",
    "PCKMeans",
    "SoftChunkletMixture",
    "SpectralRBF",
]
