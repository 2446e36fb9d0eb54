"""Every error a user can meet, one class per boundary that was crossed.

    FutureWorldError
    ├── ConfigError      a configuration key or value
    ├── WorldError       a recorded world's files and rows
    ├── RecordError      a record that breaks its own invariants
    ├── StoreError       the database, its schema, its shards
    │   └── LockedError  another process works on the run
    ├── RunError         a run folder: its config, its days, its stages
    ├── QuestionError    a question that must not be asked
    ├── PolicyError      a policy folder or an endpoint
    ├── EngineError      a request to the inference servers failed
    │   └── EngineDeadError  the servers are gone: every later request would fail too
    ├── ScoreError       a value that cannot be scored
    └── UpdateError      a batch, an optimiser step, a checkpoint

A message names the thing, what was found and the way out. The command line prints it
without a traceback and exits with 1; a bad rollout is data and not an error.
"""


class FutureWorldError(Exception):
    """The root. `str(error)` is a complete sentence for a person."""


class ConfigError(FutureWorldError):
    pass


class WorldError(FutureWorldError):
    pass


class RecordError(FutureWorldError):
    pass


class StoreError(FutureWorldError):
    pass


class LockedError(StoreError):
    pass


class RunError(FutureWorldError):
    pass


class QuestionError(FutureWorldError):
    pass


class PolicyError(FutureWorldError):
    pass


class EngineError(FutureWorldError):
    pass


class EngineDeadError(EngineError):
    pass


class ScoreError(FutureWorldError):
    pass


class UpdateError(FutureWorldError):
    pass
