"""What is kept: tables, migrations, and the transactions on them."""
