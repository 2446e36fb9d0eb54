"""`python -m proof.answers RUN SAMPLES VERSION ...`: checkpoints of a run answer its held-out set more often."""

import sys
from collections.abc import Sequence
from pathlib import Path

from futureworld.cli.console import RichReporter, print_summary
from futureworld.cycle.evaluate import answer_more
from futureworld.cycle.replay import workers
from futureworld.cycle.run import open_run, read_config
from futureworld.errors import FutureWorldError


def main(arguments: Sequence[str]) -> int:
    run, samples, *versions = arguments
    folder = Path(run)
    try:
        with (
            open_run(folder, read_config(folder), reporter=RichReporter(), holder="answers") as opened,
            workers(opened) as crew,
        ):
            for version in versions:
                summary = answer_more(opened, crew.engine, int(version), int(samples))
                print_summary("evaluate", summary, as_json=False)
    except FutureWorldError as error:
        print(f"answers: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
