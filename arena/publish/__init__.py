"""The offline path: the log of votes becomes boards, tables and files."""
