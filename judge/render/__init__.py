"""A model's hostile text as safe HTML, for pages and reports."""
