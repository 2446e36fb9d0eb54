"""Finding a policy's folder, and the engine and learner that can serve and train it.

The heavy package is found by entry point, so that `futureworld` imports without torch.
"""

import hashlib
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from futureworld.errors import PolicyError

NEEDED = ("config.json", "tokenizer_config.json")


def policy_folder(name: str) -> Path:
    """`pocket` or a Hugging Face folder -> its path. Raises PolicyError naming what is missing."""
    folder = pocket_folder() if name == "pocket" else Path(name)
    if not folder.is_dir():
        raise PolicyError(f"policy {name!r} is not a folder; give a Hugging Face model folder or 'pocket'")
    missing = [file for file in NEEDED if not (folder / file).exists()]
    if missing:
        raise PolicyError(f"policy folder {folder} lacks {', '.join(missing)}; save model and tokenizer into it")
    if not list(folder.glob("*.safetensors")):
        raise PolicyError(f"policy folder {folder} has no *.safetensors weights; save the model with safetensors")
    return folder


def pocket_folder() -> Path:
    """The built-in small policy's folder, found without importing torch."""
    spec = find_spec("verl_tool_future")
    if spec is None or not spec.submodule_search_locations:
        raise PolicyError("the built-in policy is in verl_tool_future, which is not installed; run scripts/install.sh")
    return Path(spec.submodule_search_locations[0]) / "pocket" / "weights"


def weight_hash(folder: Path) -> str:
    """16 hex digits of the SHA-256 over the folder's safetensors files, in name order."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def plugin(group: str, name: str = "verl") -> Any:
    """The class registered under `futureworld.<group>`. Raises PolicyError where none is installed."""
    for entry in entry_points(group=f"futureworld.{group}", name=name):
        try:
            return entry.load()
        except ImportError as error:
            raise PolicyError(
                f"{group[:-1]} {name!r} cannot be imported ({error}); training and sampling need Linux x86-64 and"
                " Python 3.11 with scripts/install.sh"
            ) from None
    raise PolicyError(f"no {group[:-1]} {name!r} is installed; run scripts/install.sh")
