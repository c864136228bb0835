"""Boards of categories that borrow from each other, and boards of a mix of them."""
