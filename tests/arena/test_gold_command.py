"""`arena gold`, and gold battles in `arena voters` and `arena status`: from a file and a log."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from arena.domain.gold import GONE_ON, set_of
from arena.domain.vote import Choice, Voter
from arena.store.store import Store
from tests.arena.store.battles import MODELS, NOW, ballot, complete, new_battle, ready
from tests.command import Command
