"""The chat policy over real HTTP, against a small server that plays a list of responses."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from agents_world import ASKED, small_world

from futureworld.agents.base import Feedback, Sampling, Turn, TurnEnd
from futureworld.agents.chat import TRIES, ChatPolicy
from futureworld.agents.loop import rollout
from futureworld.agents.tools import SearchTool
from futureworld.clock import FakeClock
from futureworld.config import RolloutConfig
from futureworld.errors import EngineError, PolicyError
from futureworld.records import AnswerStatus, Message, Purpose, StopReason

OPENING = (Message("system", "Rules"), Message("user", "Question"))
DROP = "drop"


@dataclass
class Server:
    """`plan` holds responses in order: (status, headers, body), or DROP to close the connection."""

    url: str = ""
    plan: list[Any] = field(default_factory=list)
    seen: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            state.seen.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            state.keys.append(self.headers["Authorization"])
            step = state.plan.pop(0)
            if step == DROP:
                return
            status, headers, body = step
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{http.server_port}/v1"
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    yield state
    http.shutdown()
    thread.join()
    http.server_close()


def says(text: str | None = None, calls: Any = None, reason: str = "stop", **rest: Any) -> tuple[int, dict, dict]:
    message = {"role": "assistant", "content": text, **({} if calls is None else {"tool_calls": calls})}
    return 200, {}, {"choices": [{"message": message, "finish_reason": reason}], **rest}


def native(arguments: Any, name: str = "search", id_: str = "c1") -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


@dataclass
class Client:
    """A policy on the server, and the seconds it wanted to wait."""

    server: Server
    waits: list[float] = field(default_factory=list)

    def turns(self, *feedback: list[Feedback]) -> list[Turn]:
        async def play() -> list[Turn]:
            policy = self.policy()
            conversation = policy.open(OPENING, [], Sampling(0.5, 0.9, 3), "r")
            try:
                return [await conversation.next(items, 50) for items in feedback]
            finally:
                await policy.close()

        return asyncio.run(play())

    def policy(self) -> ChatPolicy:
        async def sleep(seconds: float) -> None:
            self.waits.append(seconds)

        return ChatPolicy("m", self.server.url, "FUTUREWORLD_TEST_KEY", sleep=sleep)


@pytest.fixture
def client(server: Server) -> Client:
    return Client(server)


def test_a_turn_and_what_was_sent(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUTUREWORLD_TEST_KEY", "secret")
    client.server.plan = [says("\\boxed{0.3}")]
    assert client.turns([]) == [Turn("\\boxed{0.3}", (), TurnEnd.CLOSED)]
    assert client.server.keys == ["Bearer secret"]
    assert client.server.seen == [
        {
            "model": "m",
            "temperature": 0.5,
            "top_p": 0.9,
            "seed": 3,
            "max_tokens": 50,
            "messages": [{"role": "system", "content": "Rules"}, {"role": "user", "content": "Question"}],
        }
    ]


def test_tool_results_go_back_under_their_call(client: Client) -> None:
    client.server.plan = [
        says(None, [native('{"query": "a"}'), native('{"query": "b"}', id_="c2")], "tool_calls"),
        says("done"),
    ]
    first, _ = client.turns([], [Feedback("tool", "A", "search", "ok"), Feedback("tool", "B", "search", "ok")])
    assert [call.arguments for call in first.calls] == [{"query": "a"}, {"query": "b"}]
    assert client.server.keys == [None, None]
    assert client.server.seen[1]["messages"][2:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [native('{"query": "a"}'), native('{"query": "b"}', id_="c2")],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "A"},
        {"role": "tool", "tool_call_id": "c2", "content": "B"},
    ]


@pytest.mark.parametrize(
    ("item", "name", "problem"),
    [
        (native('{"query": '), "search", "not valid JSON"),
        (native("[1]"), "search", "not a JSON object"),
        (native(None), "search", "not a JSON object"),
        ({"id": "c1", "type": "function"}, "", "the call names no function"),
        ("search", "", "the call names no function"),
        ({"function": {"name": None, "arguments": "{}"}}, "", "the call names no function"),
    ],
)
def test_a7_h7_malformed_native_calls_have_a_problem(client: Client, item: Any, name: str, problem: str) -> None:
    client.server.plan = [says(None, [item]), says("done")]
    first, _ = client.turns([], [Feedback("tool", "failed", name, "failed")])
    (call,) = first.calls
    assert (call.name, call.arguments, call.problem) == (name, None, problem)
    echoed = client.server.seen[1]["messages"][2]["tool_calls"][0]
    assert echoed["function"]["arguments"] == "{}"
    assert client.server.seen[1]["messages"][3]["tool_call_id"] == echoed["id"]


def test_h1_429_waits_as_long_as_asked(client: Client) -> None:
    client.server.plan = [(429, {"Retry-After": "7"}, {}), (429, {"Retry-After": "9999"}, {}), (429, {}, {}), says("a")]
    assert client.turns([])[0].text == "a"
    assert client.waits == [7.0, 60.0, 4.0]


def test_f12_500_and_a_lost_connection_are_sent_again(client: Client) -> None:
    client.server.plan = [(500, {}, "oops"), DROP, (503, {}, ""), says("a")]
    assert client.turns([])[0].text == "a"
    assert client.waits == [1.0, 2.0, 4.0]
    assert len({json.dumps(body) for body in client.server.seen}) == 1  # A11: one request, no doubled messages


def test_tries_are_bounded(client: Client) -> None:
    client.server.plan = [(500, {}, "")] * 9
    with pytest.raises(EngineError, match=f"failed {TRIES} times, last with status 500"):
        client.turns([])
    assert len(client.server.seen) == TRIES


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refusal_is_not_sent_again(client: Client, status: int) -> None:
    client.server.plan = [(status, {}, {"error": "bad key"})]
    with pytest.raises(EngineError, match=f"refused with {status}.*bad key"):
        client.turns([])


@pytest.mark.parametrize(
    "body",
    ["<html>", {}, [], {"choices": []}, {"choices": [{}]}, {"choices": [{"message": "x"}]},
     {"choices": [{"message": {"content": [1]}}]}],
)  # fmt: skip
def test_h7_a_body_without_the_fields_is_an_engine_error(client: Client, body: Any) -> None:
    client.server.plan = [(200, {}, body)]
    with pytest.raises(EngineError, match="did not send a chat completion"):
        client.turns([])


def test_missing_optional_fields_are_read(client: Client) -> None:
    client.server.plan = [(200, {}, {"choices": [{"message": {}}]})]
    assert client.turns([]) == [Turn("", (), TurnEnd.CLOSED)]


@pytest.mark.parametrize(
    "step", [says("cut", reason="length"), (400, {}, {"error": {"code": "context_length_exceeded"}})]
)
def test_h10_a_full_window_is_a_turn_cut_by_length(client: Client, step: Any) -> None:
    client.server.plan = [step]
    assert client.turns([])[0].end is TurnEnd.LENGTH


def test_an_address_without_scheme_is_refused() -> None:
    with pytest.raises(PolicyError, match="write http"):
        ChatPolicy("m", "localhost:8000")


@pytest.mark.parametrize(
    ("used", "stop", "status"),
    [(300, StopReason.ANSWERED, AnswerStatus.OK), (600, StopReason.TOKENS, AnswerStatus.NO_ANSWER)],
)
def test_the_loop_over_http(
    client: Client, make_question: Callable[..., Any], used: int, stop: StopReason, status: AnswerStatus
) -> None:
    client.server.plan = [
        says(None, [native('{"query": "zeppelin"}')], "tool_calls", usage={"total_tokens": 100}),
        says("\\boxed{0.3}", usage={"total_tokens": used}),
    ]

    async def play() -> Any:
        policy = client.policy()
        rest: dict[str, Any] = {
            "config": RolloutConfig(max_tokens=500),
            "sampling": Sampling(),
            "clock": FakeClock(ASKED),
        }
        rest |= {"purpose": Purpose.BENCHMARK, "sample": 0, "attempt": 0}
        try:
            return await rollout(make_question(), policy, [SearchTool(1)], small_world(), **rest)
        finally:
            await policy.close()

    trajectory, _ = asyncio.run(play())
    assert (trajectory.stop_reason, trajectory.answer_status) == (stop, status)
    assert (trajectory.agent, trajectory.trainable, trajectory.ids) == ("m", False, ())
    assert trajectory.calls[0].arguments == '{"query": "zeppelin"}'
    assert client.server.seen[0]["tools"][0]["function"]["name"] == "search"
    assert "\\ boxed" in client.server.seen[1]["messages"][3]["content"]
