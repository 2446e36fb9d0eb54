"""Update: join rewards to what was sampled, and let the learner take one step.

The batch is every finished training trajectory whose question has an outcome and that no update
has used: yesterday's, and late ones with their age. Rewards are computed here and never stored.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import date

from futureworld import faults
from futureworld.config import check_training
from futureworld.cycle.batch import Batch, Learner, Member, whole_groups
from futureworld.cycle.controls import permuted
from futureworld.cycle.run import Run, Summary
from futureworld.evaluation.scores import reward
from futureworld.records import Checkpoint, Forecast, Purpose, Trajectory, Update, update_id


def update(run: Run, day: date, learner: Learner) -> Summary:
    """Make the next policy version from what is resolved on calendar day `day`; skipped when there is nothing."""
    check_training(run.config)

    def work() -> Summary:
        stored = next((made for made in run.store.updates() if made.day == day), None)
        if stored is not None:  # killed after the row and before the ledger
            return summary(stored, make_batch(run, day).dropped)
        batch = make_batch(run, day)
        if not batch.members:
            return {"trained": 0, "skipped": "no resolved group to train on", "dropped": dict(batch.dropped)}
        learned = learner.update(batch)
        faults.at("update.learned")
        ids = tuple(member.trajectory.id for member in batch.members)
        made = Update(
            id=batch_id(batch),
            day=day,
            base_version=batch.base.version,
            version=batch.step,
            trajectory_ids=ids,
            ages=tuple(member.age for member in batch.members),
            weight_hash=learned.weight_hash,
            metrics=dict(learned.metrics),
        )
        path = learned.path.relative_to(run.folder) if learned.path.is_relative_to(run.folder) else learned.path
        run.store.add_update(made, Checkpoint(batch.step, str(path), learned.weight_hash, made.id, day))
        faults.at("update.stored")
        return summary(made, batch.dropped)

    return run.stage("update", day.isoformat(), work)


def summary(made: Update, dropped: Mapping[str, int]) -> Summary:
    return {
        "trained": len(made.trajectory_ids),
        "version": made.version,
        "late": sum(age > 1 for age in made.ages),
        "dropped": dict(dropped),
        "metrics": dict(made.metrics),
    }


def batch_id(batch: Batch) -> str:
    return update_id(batch.base.version, batch.base.weight_hash, [member.trajectory.id for member in batch.members])


def make_batch(run: Run, day: date) -> Batch:
    """Every trainable member known on `day`, in whole groups; what is left out is counted."""
    store = run.store
    trained = store.trained_ids()
    waiting = [f for f in store.forecasts(purpose=Purpose.TRAIN, agent=run.agent) if f.id not in trained]
    outcomes = known_outcomes(run, waiting)
    dropped: Counter[str] = Counter()
    wanted: list[Forecast] = []
    for forecast in waiting:
        if forecast.status.is_failure:
            dropped["failed outside the policy"] += 1
        elif forecast.question_id not in outcomes:
            dropped["waiting for the world"] += 1
        else:
            wanted.append(forecast)
    members = [
        _member(run, trajectory, outcomes[trajectory.question_id], day)
        for trajectory in store.trajectories([forecast.id for forecast in wanted])
    ]
    groups, alone = whole_groups(members)
    if alone:
        dropped["alone in its group"] += alone
    base = run.newest_checkpoint()
    return Batch(day, base.version + 1, base, groups, dict(dropped))


def known_outcomes(run: Run, forecasts: list[Forecast]) -> dict[str, float]:
    """Outcomes of the forecasts' questions; void and pending ones are absent."""
    ids = sorted({forecast.question_id for forecast in forecasts})
    outcomes = {name: o.value for name, o in run.store.outcomes(ids).items() if o.value is not None}
    if run.config.control == "permuted-outcomes":
        return permuted(outcomes, run.store.questions(list(outcomes)), run.config.seed)
    return outcomes


def _member(run: Run, trajectory: Trajectory, outcome: float, day: date) -> Member:
    return Member(
        trajectory=trajectory,
        reward=reward(trajectory.probability, outcome, run.config.reward.missing, run.config.reward.score),
        age=(day - trajectory.day).days,
    )
