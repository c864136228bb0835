"""What a rating costs: quality against price and seconds, and mistakes that are not alike."""
