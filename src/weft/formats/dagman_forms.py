"""The commands of DAGMan whose words have one fixed form each."""

from __future__ import annotations

import re

# the words after a command, as a user is told, and as they must be
FORMS = {
    "RETRY": ("JOB TIMES [UNLESS-EXIT CODE]", r"W [0-9]+( UNLESS-EXIT N)?"),
    "ABORT_DAG_ON": ("JOB CODE [RETURN CODE]", r"W N( RETURN [0-9]+)?"),
    "PRIORITY": ("JOB NUMBER", r"W N"),
    "CATEGORY": ("JOB CATEGORY", r"W W"),
    "MAXJOBS": ("CATEGORY NUMBER", r"W [0-9]+"),
    "PRE_SKIP": ("JOB CODE", r"W N"),
    "DONE": ("JOB", r"W"),
    "SPLICE": ("NAME FILE [DIR DIRECTORY]", r"W W( DIR W)?"),
    "INCLUDE": ("FILE", r"W"),
    "CONNECT": ("SPLICE SPLICE", r"W W"),
    "PIN_IN": ("JOB NUMBER", r"W 0*[1-9][0-9]*"),
    "PIN_OUT": ("JOB NUMBER", r"W 0*[1-9][0-9]*"),
    "CONFIG": ("FILE", r"W"),
    "DOT": (
        "FILE [[DONT-]UPDATE] [[DONT-]OVERWRITE] [INCLUDE FILE]",
        r"W( (DONT-)?(UPDATE|OVERWRITE)| INCLUDE W)*",
    ),
    "NODE_STATUS_FILE": ("FILE [SECONDS] [ALWAYS-UPDATE]", r"W( N| ALWAYS-UPDATE)*"),
    "JOBSTATE_LOG": ("FILE", r"W"),
    "SAVE_POINT_FILE": ("JOB [FILE]", r"W( W)?"),
    "SET_JOB_ATTR": ("NAME = VALUE", r"[^ =]+ ?=.*"),
    "ENV": ("SET|GET VARIABLES", r"(SET|GET)( W)+"),
    "REJECT": ("", r""),
    "SCRIPT": (
        "[DEFER STATUS SECONDS] [DEBUG FILE STDOUT|STDERR|ALL] PRE|POST|HOLD JOB PROGRAM ...",
        r"(DEFER N N |DEBUG W (STDOUT|STDERR|ALL) )*(PRE|POST|HOLD) W( W)+",
    ),
}
SHAPES = {
    command: re.compile(
        re.sub(r"\bN\b", "[+-]?[0-9]+", re.sub(r"\bW\b", "[^ ]+", shape)), re.IGNORECASE
    )
    for command, (_, shape) in FORMS.items()
}
