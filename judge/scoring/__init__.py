"""Published scores from recorded annotations: arrays in, frozen values out, no model called."""
