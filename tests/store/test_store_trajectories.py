"""Token truth: what was sampled comes back, position by position, from body and shard."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import sample_rollout

from futureworld.errors import StoreError
from futureworld.records import AnswerStatus, Message, Role, Span, StopReason, ToolCall, Trajectory
from futureworld.store.trajectories import bodies_table, encode, from_table, read_shard, write_shard

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
INT32 = st.integers(0, 2**31 - 1)
LOG_PROB = st.one_of(
    st.floats(max_value=0.0, allow_nan=False),
    st.floats(max_value=0.0, allow_nan=False, width=32),
)


@st.composite
def trajectories(draw: st.DrawFn) -> Trajectory:
    spans: list[Span] = []
    log_probs: list[float | None] = []
    for _ in range(draw(st.integers(0, 4))):
        length, role = draw(st.integers(0, 5)), draw(st.sampled_from(Role))
        start = len(log_probs)
        environment = role is Role.ENVIRONMENT
        spans.append(Span(start, start + length, role, "search" if environment else None, draw(st.none() | TEXT)))
        log_probs += [None if environment else draw(LOG_PROB) for _ in range(length)]
    probability = draw(st.none() | st.floats(0, 1))
    return sample_rollout(
        sample=draw(st.integers(0, 2**31 - 1)),
        day=draw(st.dates(date(1970, 1, 1))),
        as_of=draw(st.datetimes(datetime(1970, 1, 2), timezones=st.just(UTC))),  # noqa: DTZ001
        prompt_ids=tuple(draw(st.lists(INT32, max_size=5))),
        ids=tuple(draw(st.lists(INT32, min_size=len(log_probs), max_size=len(log_probs)))),
        spans=tuple(spans),
        log_probs=tuple(log_probs),
        temperature=draw(st.floats(0, 2)),
        seed=draw(st.none() | st.integers(-(2**63), 2**63 - 1)),
        stop_reason=draw(st.sampled_from(StopReason)),
        answer=draw(st.none() | TEXT),
        probability=probability,
        answer_status=AnswerStatus.NO_ANSWER if probability is None else AnswerStatus.OK,
        messages=tuple(draw(st.lists(st.builds(Message, TEXT, TEXT), max_size=3))),
        calls=tuple(
            draw(
                st.lists(
                    st.builds(ToolCall, INT32, TEXT, TEXT, TEXT, TEXT, st.lists(TEXT, max_size=2).map(tuple)),
                    max_size=3,
                )
            )
        ),
        trainable=False,
    )[0]


@settings(max_examples=60, deadline=None)
@given(st.lists(trajectories(), min_size=1, max_size=4, unique_by=lambda t: t.id))
def test_a1_tokens_and_text_survive_body_and_parquet(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Trajectory]
) -> None:
    table = bodies_table(encode(rows))
    assert list(from_table(table)) == rows
    path = tmp_path_factory.mktemp("shards") / "a.parquet"
    write_shard(path, [table])
    assert list(from_table(read_shard(path, [row.id for row in rows]))) == rows


def test_log_probs_of_the_sampler_survive_as_float32() -> None:
    sampled = np.array([-0.1, -1e-8, -3.4028235e38, 0.0, -1e-45], dtype=np.float32)
    log_probs = tuple(sampled.tolist())
    row = sample_rollout(ids=(1, 2, 3, 4, 5), spans=(Span(0, 5, Role.POLICY),), log_probs=log_probs)[0]
    (back,) = from_table(bodies_table(encode([row])))
    assert np.array_equal(np.array(back.log_probs, dtype=np.float32), sampled)


def test_e12_line_separators_and_nul_in_text_are_only_text() -> None:
    text = "a\u2028b\u2029c\x85d\r\ne\0f \N{SNOWMAN} \U0001f600"
    row = sample_rollout(messages=(Message("tool", text),), answer=text)[0]
    (back,) = from_table(bodies_table(encode([row])))
    assert (back.messages[0].text, back.answer) == (text, text)


def test_d10_zero_is_a_value_and_none_is_missing() -> None:
    zero = sample_rollout(sample=0, probability=0.0, seed=0)[0]
    none = sample_rollout(sample=1, probability=None, answer=None, answer_status=AnswerStatus.NO_ANSWER, seed=None)[0]
    back = list(from_table(bodies_table(encode([zero, none]))))
    assert [(row.probability, row.seed) for row in back] == [(0.0, 0), (None, None)]
    assert back[0].log_probs == (-0.5, -1.25, None, None, 0.0)


def test_a_shard_has_an_explicit_schema_even_where_everything_is_missing(tmp_path: Path) -> None:
    chat = sample_rollout(
        prompt_ids=(), ids=(), spans=(), log_probs=(), messages=(), calls=(), seed=None, answer=None,
        probability=None, answer_status=AnswerStatus.NO_ANSWER, trainable=False,
    )[0]  # fmt: skip
    path = tmp_path / "chat.parquet"
    write_shard(path, [bodies_table(encode([chat]))])
    schema = pq.read_schema(path)
    assert schema.metadata[b"futureworld.schema_version"] == b"1"
    assert schema.field("log_probs").type == pa.list_(pa.float64())
    assert schema.field("as_of").type == pa.timestamp("us", tz="UTC")
    assert {field.name for field in schema} == set(Trajectory.__dataclass_fields__)
    assert not any(pa.types.is_null(kind) for kind in _leaves(schema))


def _leaves(schema: pa.Schema) -> list[pa.DataType]:
    found, waiting = [], [field.type for field in schema]
    while waiting:
        kind = waiting.pop()
        if pa.types.is_list(kind):
            waiting.append(kind.value_type)
        elif pa.types.is_struct(kind):
            waiting += [kind.field(i).type for i in range(kind.num_fields)]
        else:
            found.append(kind)
    return found


def test_a_time_of_another_zone_comes_back_in_utc() -> None:
    moment = datetime(2026, 5, 4, 20, 0, 0, 1, tzinfo=ZoneInfo("Asia/Shanghai"))
    (back,) = from_table(bodies_table(encode([sample_rollout(as_of=moment)[0]])))
    assert back.as_of == moment
    assert back.as_of.utcoffset() == timedelta(0)


def test_shards_that_are_missing_broken_or_foreign_are_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"a\.parquet is missing"):
        read_shard(tmp_path / "a.parquet", [])
    (tmp_path / "b.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(StoreError, match=r"b\.parquet cannot be read"):
        read_shard(tmp_path / "b.parquet", [])
    pq.write_table(pa.table({"id": ["x"]}), tmp_path / "c.parquet")
    with pytest.raises(StoreError, match=r"c\.parquet has schema version none, expected 1"):
        read_shard(tmp_path / "c.parquet", [])


def test_a_trajectory_of_another_schema_version_is_refused() -> None:
    with pytest.raises(StoreError, match="schema version 2, expected 1"):
        encode([sample_rollout(schema_version=2)[0]])
