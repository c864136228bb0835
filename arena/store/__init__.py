"""The database: tables, migrations, and the transactions on them."""
