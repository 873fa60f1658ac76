"""Programs for other interpreters: standard library and torch alone, run by path, each printing one JSON document."""
