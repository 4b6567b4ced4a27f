"""Speed and memory of Habilis, next to installed alternatives."""
