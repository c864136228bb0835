"""The words of a prompt that say what it is about."""

import re

_WORD = re.compile(r"\w+")
_PLURAL = re.compile(r"(?<=ss)es$|(?<=[^s])s$")
_ASKING = re.compile(
    r"a|about|an|and|are|be|between|can|could|describe|did|difference|do|does|explain|give|how|i"
    r"|is|it|me|mean|my|of|on|please|tell|that|the|there|this|to|us|use|used|was|what|when|where"
    r"|which|who|why|will|would|write|you|your"
)


def terms(text: str) -> list[str]:
    """Words of a text in lower case and singular, without those that only ask.

    Examples
    --------
    >>> terms("What are the `Exceptions` of classes?")
    ['exception', 'class']
    """
    words = (word for word in _WORD.findall(text.lower()) if not _ASKING.fullmatch(word))
    return [_PLURAL.sub("", word) for word in words]
