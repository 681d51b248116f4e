"""The use cases: for each its GPUs in their order, its columns' figures and the numbers of its sentences.

One module per use case, all pure: figures of the catalogue and rules of `sizing.engine` in, figures out. What no
catalogue row holds stands beside the rule that reads it, with its source. `rows` has the shape that all share.
"""

from collections.abc import Mapping

from sizing.use_cases.fine_tuning import FINE_TUNING
from sizing.use_cases.image_video import IMAGE_VIDEO
from sizing.use_cases.llm_inference import LLM_INFERENCE
from sizing.use_cases.llm_training import LLM_TRAINING
from sizing.use_cases.rendering import RENDERING
from sizing.use_cases.rows import UseCase
from sizing.use_cases.science import SCIENCE

USE_CASES: Mapping[str, UseCase] = {
    use_case.slug: use_case for use_case in (LLM_TRAINING, FINE_TUNING, LLM_INFERENCE, IMAGE_VIDEO, RENDERING, SCIENCE)
}
