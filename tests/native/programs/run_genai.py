"""A program that knows OpenVINO GenAI only.

    run_genai.py MODEL_FOLDER DEVICE PIPELINE GENERATION

Two JSON objects: properties of the pipeline and of the generation. Prints the texts for
two prompts, or the error.
"""

import json
import sys

import openvino_genai as genai

folder, device, pipeline, generation = sys.argv[1:]
properties = json.loads(pipeline)
if properties.pop("continuous_batching", False):
    properties["scheduler_config"] = genai.SchedulerConfig()
    properties["scheduler_config"].cache_size = 1
report = {}
try:
    model = genai.LLMPipeline(folder, device, **properties)
    prompts = ["the cat sat on", "a red dog"]
    report["texts"] = model.generate(
        prompts, ignore_eos=True, max_new_tokens=10, **json.loads(generation)
    ).texts
except RuntimeError as error:
    report["error"] = str(error)
report["modules"] = sorted(name for name in sys.modules if name.startswith("ov_autoplace"))
print(json.dumps(report))
