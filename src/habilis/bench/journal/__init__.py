"""`habilis bench journal`: what it costs to write down every step of a run, and to go on from there."""
