"""Stores in an S3 bucket."""

from carrel.adapters.s3.blob_store import S3BlobStore
from carrel.adapters.s3.object_store import S3ObjectStore

__all__ = ["S3BlobStore", "S3ObjectStore"]
