"""The reading pages: leaderboard, my votes, method. Rendered on the server, without script."""

from arena.pages.rendering import error_page
from arena.pages.routes import pages_router

__all__ = ["error_page", "pages_router"]
