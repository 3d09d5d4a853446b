"""spinkit: experiments, plots and reports of the sPIN toolkit."""

from importlib.metadata import version

__version__ = version("spinkit")
