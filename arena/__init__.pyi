from .app import chat as chat
