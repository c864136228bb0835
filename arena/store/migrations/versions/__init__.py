"""One module a revision; none is changed once it was released."""
