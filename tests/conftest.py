"""Settings for every test."""

from hypothesis import settings

# A busy machine is slow, not wrong: hypothesis may take its time.
settings.register_profile('habilis', deadline=None)
settings.load_profile('habilis')
