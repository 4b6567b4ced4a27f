"""The sandbox as a part of other frameworks. Each module needs its framework, and nothing else imports it."""
