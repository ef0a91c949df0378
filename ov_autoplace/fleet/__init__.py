"""Many machines: what one machine does alone, on a cluster of Ray's; the only package that imports it.

Everything that is measured or decided on a machine is what the other packages do there; this one finds the
machines, hands out work, keeps what came back, and makes one answer for each kind of machine.
"""
