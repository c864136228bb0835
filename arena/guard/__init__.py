"""Who a visitor is, and how much visitors may use."""
