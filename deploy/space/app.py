"""A Hugging Face Space that is the chat of an arena: see README.md."""

from pathlib import Path

import arena

DATA = Path("/data")
"""The Space's persistent storage, if it has any; without it, votes go when the Space restarts."""

settings = {
    "roster": "roster.toml" if Path("roster.toml").exists() else None,
    "database": f"sqlite:///{DATA}/arena.db" if DATA.is_dir() else None,
    "trusted_proxies": "10.0.0.0/8",  # the Space is reached through these alone
}
chat = arena.chat(**settings)

if __name__ == "__main__":
    chat.launch()
