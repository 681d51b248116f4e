"""Takes a file that somebody sends without ever writing it anywhere."""

from io import BytesIO
from typing import Any

from django.core.files.uploadedfile import InMemoryUploadedFile
from django.core.files.uploadhandler import FileUploadHandler

from sizing.calculator.config_text import MOST_BYTES


class BoundedUpload(FileUploadHandler):
    """Keeps as much of a file in memory as tells that it is too large, and lets the rest pass by."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Begin with nothing."""
        super().new_file(*args, **kwargs)
        self._kept = bytearray()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Keep what there is room for."""
        self._kept += raw_data[: MOST_BYTES + 1 - len(self._kept)]

    def file_complete(self, file_size: int) -> InMemoryUploadedFile:
        """Return what was kept."""
        return InMemoryUploadedFile(
            BytesIO(self._kept), self.field_name, self.file_name or "", self.content_type, len(self._kept), None
        )
