"""Gives every OpenVINO program of this environment a second device, XCPU: the CPU plugin once more.

Every ``ov::Core`` adds what it finds in a file ``plugins.xml`` beside OpenVINO's library. Only
``make test-native`` runs this, for its own environment.
"""

from __future__ import annotations

from pathlib import Path

import openvino as ov

LIBRARIES = Path(ov.__file__).parent / "libs"
PLUGINS = """<ie>
  <plugins>
    <plugin name="XCPU" location="libopenvino_intel_cpu_plugin.so"/>
  </plugins>
</ie>
"""

if __name__ == "__main__":
    (LIBRARIES / "plugins.xml").write_text(PLUGINS)
    assert "XCPU" in ov.Core().available_devices
