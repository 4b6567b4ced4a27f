"""The toolsets that come with Habilis, one module each."""
