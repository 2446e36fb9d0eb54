"""The pocket policy's tokenizer: byte-level BPE, so that any text can be encoded, and ordinary
added tokens for the pieces of its own turns, so that a turn is a handful of tokens.

Each syllable of a code is one token wherever a word consists of exactly two of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast

from futureworld.records import SYLLABLES
from verl_tool_future.pocket.dialogue import CALL_CLOSE, CALL_OPEN, NO_RESULTS, Fact, Stance

END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
ASSISTANT = "assistant\n"
BOX = ". \\boxed{0."
VOCABULARY = 1024
"""At most; a piece that BPE found by itself is counted once."""
CODE_WEIGHT = 200
"""How often each pair of syllables is shown to BPE, enough to make every syllable a merge."""

_SYLLABLE = "[bdfgklmnprstvz][aeiou]"
_CODE = Regex(rf"\b{_SYLLABLE}(?={_SYLLABLE}\b)")
_PIECES = Regex(r" ?\p{L}+| ?\d| ?[^\s\p{L}\d]+|\s+")


def pieces(domains: Sequence[str]) -> list[AddedToken]:
    """The added tokens: markup and phrases of the dialogue, distances, whole words."""
    phrases = [CALL_OPEN, CALL_CLOSE, NO_RESULTS, "user\n", ASSISTANT, "tool\n"]
    phrases += ["\nAsked: ", "\nDomain: ", "\nCode: ", ": yes side ", " of ", ", last "]
    phrases += ["For ", " I guess: ", "nothing", BOX]
    phrases += [f" I {stance} " for stance in Stance] + [f"{fact}: " for fact in Fact]
    phrases += [f" by {tenth / 10:.1f}" for tenth in range(31)]
    words = ["yes", "no", *domains]
    return [AddedToken(text, normalized=False, special=False) for text in phrases] + [
        AddedToken(text, normalized=False, special=False, single_word=True) for text in words
    ]


def build(texts: Iterable[str], domains: Sequence[str]) -> PreTrainedTokenizerFast:
    """A tokenizer of `VOCABULARY` entries, its merges learned from `texts`."""
    core = Tokenizer(BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(_CODE, "isolated"),
            pre_tokenizers.Split(_PIECES, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    specials = [END_OF_TEXT, TURN_START, TURN_END]
    added = pieces(domains)
    trainer = BpeTrainer(
        vocab_size=VOCABULARY - len(added),
        special_tokens=specials,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(_corpus(texts, [token.content for token in added]), trainer)
    core.add_tokens(added)
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token=TURN_END,
        pad_token=END_OF_TEXT,
        additional_special_tokens=[TURN_START],
        clean_up_tokenization_spaces=False,
        model_max_length=512,
        chat_template=(Path(__file__).parent / "template.jinja").read_text(),
    )


def _corpus(texts: Iterable[str], added: Sequence[str]) -> Iterator[str]:
    """`texts` without the phrases that are tokens already, then every pair of syllables."""
    for text in texts:
        for phrase in added:
            if len(phrase) > 3:
                text = text.replace(phrase, "\n")  # noqa: PLW2901
        yield text
    for _ in range(CODE_WEIGHT):
        for first, second in zip(SYLLABLES, reversed(SYLLABLES), strict=True):
            yield first + second


def token(tokenizer: PreTrainedTokenizerFast, text: str) -> int:
    """The id of `text`, which must be one entry of the vocabulary."""
    found = tokenizer.convert_tokens_to_ids(text)
    assert isinstance(found, int), text
    return found


def render(tokenizer: PreTrainedTokenizerFast, turns: Sequence[Mapping[str, str]], *, header: bool = False) -> str:
    """`turns` as the chat template writes them, with the header of the policy's next turn if asked for."""
    text = tokenizer.apply_chat_template([dict(turn) for turn in turns], tokenize=False, add_generation_prompt=header)
    assert isinstance(text, str)
    return text


def decode(tokenizer: PreTrainedTokenizerFast, ids: Sequence[int]) -> str:
    text = tokenizer.decode(list(ids))
    assert isinstance(text, str)
    return text
