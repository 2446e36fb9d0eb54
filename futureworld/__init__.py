"""FutureWorld: the open environment in which language-model agents learn from the future."""

__version__ = "0.1.0"
