"""Ids of prompts: equal ones share one, by which nobody without the secret can guess them."""

import hmac
import secrets
from datetime import datetime

from sqlalchemy.dialects import postgresql  # SQLite spells its conflicts alike
from sqlmodel import col, select

from arena.store.store import Store
from arena.store.tables import PromptSecretRow


def prompt_secret(store: Store, now: datetime) -> str:
    """Give the secret of all prompts on this database; the first one to ask makes it."""
    new = {"id": 1, "secret": secrets.token_hex(32), "created": now}
    with store.writing() as session:
        make = postgresql.insert(PromptSecretRow).values(new).on_conflict_do_nothing()
        session.connection().execute(make)
        return session.exec(select(col(PromptSecretRow.secret))).one()


def prompt_id(secret: str, prompt: str) -> str:
    """HMAC of a prompt, in 16 hexadecimal digits."""
    return hmac.new(secret.encode(), prompt.encode(), "sha256").hexdigest()[:16]
