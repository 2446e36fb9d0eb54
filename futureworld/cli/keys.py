"""`futureworld config`: what every key means, read from the configuration's own classes."""

import ast
import inspect
from itertools import pairwise
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}


def config(word: Annotated[str, typer.Argument(help="Only keys whose name holds this.")] = "") -> None:
    """List the configuration keys: default, bounds, meaning. --set KEY=VALUE and YAML files change them."""
    from futureworld.config import Config

    for key, text in described(Config, Config().model_dump(mode="json")):
        if word in key:
            print(text)


def described(section: Any, defaults: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """(dotted key, its default, bounds and meaning as text) of a section and the sections in it, in order."""
    said = meanings(section)
    rows: list[tuple[str, str]] = []
    for name, info in section.model_fields.items():
        key, default = prefix + name, defaults[name]
        if hasattr(info.annotation, "model_fields"):
            rows += described(info.annotation, default, f"{key}.")
        else:
            below = f"\n    {said[name]}" if name in said else ""
            rows.append((key, f"{key} = {_on_one_line(default)}{bounds(info)}{below}"))
    return rows


def meanings(section: type) -> dict[str, str]:
    """Key -> the text under it in the class body, on one line."""
    body = ast.parse(inspect.getsource(section)).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for key, after in pairwise(body.body):
        if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name) and isinstance(after, ast.Expr):
            found[key.target.id] = " ".join(str(ast.literal_eval(after.value)).split())
    return found


def bounds(info: Any) -> str:
    """What a value may be, as `  (>= 1, <= 64)` or `  (one | two)`; nothing where any value of its type is."""
    if get_origin(info.annotation) is Literal:
        return f"  ({' | '.join(get_args(info.annotation))})"
    limits = [(sign, getattr(item, name, None)) for item in info.metadata for name, sign in SIGNS.items()]
    given = [f"{sign} {limit}" for sign, limit in limits if limit is not None]
    return f"  ({', '.join(given)})" if given else ""


def _on_one_line(value: Any) -> str:
    import yaml

    return yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("...\n").strip()
