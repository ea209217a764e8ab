"""The stages of a study, in order: which follow from its file, what each reads and writes.

    texts -> models -> vocabulary -> sentences -> scores -> pairs -------+
                           |             |                               |
                           +-------------+----> triplets -> selection ---+--> design --> exports
                                                                |               |
                                                             review       trial scores --> power
                                                                                |
                                                     responses <----------------+--> analysis

A stage that the file does not name is left out, unless a stage that it names needs it. All paths
are relative to the study's folder, in which the stages run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.study.experiment_stages import (
    analysis_stage,
    design_stage,
    export_stages,
    power_stage,
    responses_stage,
    review_stages,
    trial_scores_stage,
)
from contstim.study.places import StudyFiles
from contstim.study.stimulus_stages import (
    model_stages,
    pairs_stage,
    scores_stage,
    selection_stage,
    sentences_stage,
    text_stages,
    triplets_stage,
    vocabulary_stage,
)

if TYPE_CHECKING:
    from contstim.study.stage import StudyStage
    from contstim.study.study import Study


def stages_of(study: Study) -> list[StudyStage]:
    """The stages that a study needs, each behind those whose files it reads."""
    files = StudyFiles(study)
    stages: list[StudyStage | None] = [
        *text_stages(files),
        *model_stages(files),
        vocabulary_stage(files),
        sentences_stage(files),
        scores_stage(files),
        pairs_stage(files),
        triplets_stage(files),
        selection_stage(files),
        design_stage(files),
        *review_stages(files),
        trial_scores_stage(files),
        power_stage(files),
        responses_stage(files),
        *export_stages(files),
        analysis_stage(files),
    ]
    return [stage for stage in stages if stage is not None]
