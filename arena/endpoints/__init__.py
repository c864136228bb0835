"""Who answers: model endpoints over HTTP, the embedded toys, and recordings."""
