"""JavaScript tools."""
