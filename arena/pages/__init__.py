"""The reading pages: leaderboard, battles, my votes, method; without any script."""

from arena.pages.rendering import error_page
from arena.pages.routes import Exhibits, pages_router

__all__ = ["Exhibits", "error_page", "pages_router"]
