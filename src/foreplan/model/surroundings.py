"""What a command has around it: variables of its environment, a container, a conda environment."""

from __future__ import annotations

from dataclasses import dataclass

ENGINES = ("apptainer", "singularity", "docker", "podman")  # the first that is found is used
APPTAINER = ENGINES[:2]  # these run images that are files
DOCKER = "docker://"  # an image of a registry, as all engines can have it
_IMAGE_FILES = (".sif", ".simg", ".img")


@dataclass(frozen=True)
class Surroundings:
    """Part of what a result is made from, but for the engine."""

    env: tuple[tuple[str, str], ...] = ()  # sorted by name
    container: str | None = None  # an image
    engine: str | None = None  # what runs it; None: whatever is found
    conda: str | None = None  # the name of an environment, or its prefix

    @property
    def is_wrapped(self) -> bool:
        """Whether the command is given to another program, which then runs it."""
        return self.container is not None or self.conda is not None

    @property
    def image_file(self) -> str | None:
        """The image, if it is a file."""
        image = self.container or ""
        return image if image.startswith(("/", "./")) or image.endswith(_IMAGE_FILES) else None

    @property
    def engines(self) -> tuple[str, ...]:
        """The engines that may run the image."""
        if self.engine is not None:
            return (self.engine,)
        own = self.image_file is not None or (
            "://" in (self.container or "") and not (self.container or "").startswith(DOCKER)
        )
        return APPTAINER if own else ENGINES


BARE = Surroundings()
