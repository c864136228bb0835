"""Pages served by themselves, without an arena that decides who may ask for them."""

from fastapi import APIRouter, FastAPI

from arena.guard import access

EVERY = (access.VISITORS, access.PERSONAL, access.FRONT_PAGE, access.EVERYBODY)


def open_pages(router: APIRouter) -> FastAPI:
    """Make an application of a router's pages, which everybody may ask for."""
    app = FastAPI()
    app.include_router(router)
    for declared in EVERY:
        assert declared.dependency
        app.dependency_overrides[declared.dependency] = lambda: None
    return app
