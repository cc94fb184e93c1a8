"""The native core. Where it can not be built, linkmix installs without it and computes with NumPy."""

from glob import glob

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "linkmix.native._core",
            sources=["src/linkmix/native/core.c"],
            depends=sorted(glob("src/linkmix/native/*.h")),
            # Not -ffast-math: the exponential needs additions to be made in the order in which they stand.
            extra_compile_args=["-O3", "-ffp-contract=fast"],
            optional=True,
        )
    ]
)
