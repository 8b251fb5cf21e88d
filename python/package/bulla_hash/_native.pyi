from collections.abc import Iterable
from os import PathLike
from typing import ClassVar, Final, Literal, final

from typing_extensions import Buffer, Self

from .bao import ReadableFile, SeekableFile, WritableFile

__all__ = [
    "BaoReader",
    "BaoWriter",
    "DecodeError",
    "SigningKey",
    "__version__",
    "bao_decode",
    "bao_decode_slice",
    "bao_encode",
    "bao_outboard",
    "bao_slice",
    "blake2b",
    "blake2bp",
    "blake2s",
    "blake2sp",
    "blake3",
    "ed25519_sign_many",
    "ed25519_verify_many",
    "hash_many",
    "kernel",
]

__version__: Final[str]

@final
class blake3:
    name: ClassVar[str]
    digest_size: ClassVar[int]
    block_size: ClassVar[int]
    key_size: ClassVar[int]
    AUTO: ClassVar[int]
    def __new__(
        cls,
        data: Buffer | None = None,
        /,
        *,
        key: Buffer | None = None,
        derive_key_context: str | None = None,
        max_threads: int = 1,
        usedforsecurity: bool = True,
    ) -> Self: ...
    def update(self, data: Buffer, /) -> Self: ...
    def update_mmap(self, path: str | PathLike[str]) -> Self: ...
    def copy(self) -> Self: ...
    def reset(self) -> None: ...
    def digest(self, length: int = 32, *, seek: int = 0) -> bytes: ...
    def hexdigest(self, length: int = 32, *, seek: int = 0) -> str: ...

@final
class blake2b:
    name: ClassVar[str]
    block_size: ClassVar[int]
    MAX_KEY_SIZE: ClassVar[int]
    MAX_DIGEST_SIZE: ClassVar[int]
    SALT_SIZE: ClassVar[int]
    PERSON_SIZE: ClassVar[int]
    def __new__(
        cls,
        data: Buffer | None = None,
        /,
        *,
        digest_size: int | None = None,
        key: Buffer | None = None,
        salt: Buffer | None = None,
        person: Buffer | None = None,
        fanout: int = 1,
        depth: int = 1,
        leaf_size: int | None = None,
        node_offset: int | None = None,
        node_depth: int = 0,
        inner_size: int = 0,
        last_node: bool = False,
        usedforsecurity: bool = True,
    ) -> Self: ...
    @property
    def digest_size(self) -> int: ...
    def update(self, data: Buffer, /) -> None: ...
    def digest(self) -> bytes: ...
    def hexdigest(self) -> str: ...
    def copy(self) -> Self: ...

@final
class blake2s:
    name: ClassVar[str]
    block_size: ClassVar[int]
    MAX_KEY_SIZE: ClassVar[int]
    MAX_DIGEST_SIZE: ClassVar[int]
    SALT_SIZE: ClassVar[int]
    PERSON_SIZE: ClassVar[int]
    def __new__(
        cls,
        data: Buffer | None = None,
        /,
        *,
        digest_size: int | None = None,
        key: Buffer | None = None,
        salt: Buffer | None = None,
        person: Buffer | None = None,
        fanout: int = 1,
        depth: int = 1,
        leaf_size: int | None = None,
        node_offset: int | None = None,
        node_depth: int = 0,
        inner_size: int = 0,
        last_node: bool = False,
        usedforsecurity: bool = True,
    ) -> Self: ...
    @property
    def digest_size(self) -> int: ...
    def update(self, data: Buffer, /) -> None: ...
    def digest(self) -> bytes: ...
    def hexdigest(self) -> str: ...
    def copy(self) -> Self: ...

@final
class blake2bp:
    name: ClassVar[str]
    block_size: ClassVar[int]
    MAX_KEY_SIZE: ClassVar[int]
    MAX_DIGEST_SIZE: ClassVar[int]
    def __new__(
        cls,
        data: Buffer | None = None,
        /,
        *,
        digest_size: int | None = None,
        key: Buffer | None = None,
        usedforsecurity: bool = True,
    ) -> Self: ...
    @property
    def digest_size(self) -> int: ...
    def update(self, data: Buffer, /) -> None: ...
    def digest(self) -> bytes: ...
    def hexdigest(self) -> str: ...
    def copy(self) -> Self: ...

@final
class blake2sp:
    name: ClassVar[str]
    block_size: ClassVar[int]
    MAX_KEY_SIZE: ClassVar[int]
    MAX_DIGEST_SIZE: ClassVar[int]
    def __new__(
        cls,
        data: Buffer | None = None,
        /,
        *,
        digest_size: int | None = None,
        key: Buffer | None = None,
        usedforsecurity: bool = True,
    ) -> Self: ...
    @property
    def digest_size(self) -> int: ...
    def update(self, data: Buffer, /) -> None: ...
    def digest(self) -> bytes: ...
    def hexdigest(self) -> str: ...
    def copy(self) -> Self: ...

def hash_many(inputs: Iterable[Buffer], /, *, key: Buffer | None = None) -> list[bytes]: ...
def kernel(algorithm: Literal["blake3", "blake2", "ed25519"] = "blake3", /) -> str: ...

class DecodeError(ValueError): ...

def bao_encode(data: Buffer, chunk_log: int, /) -> tuple[bytes, bytes]: ...
def bao_outboard(data: Buffer, chunk_log: int, /) -> tuple[bytes, bytes]: ...
def bao_decode(encoded: Buffer, hash: Buffer, outboard: Buffer | None, chunk_log: int, /) -> bytes: ...
def bao_slice(
    encoded: Buffer, start: int, length: int, outboard: Buffer | None, chunk_log: int, /
) -> bytes: ...
def bao_decode_slice(
    slice: Buffer, hash: Buffer, start: int, length: int, chunk_log: int, /
) -> bytes: ...
@final
class BaoReader:
    @staticmethod
    def decoder(file: ReadableFile, hash: Buffer, outboard: ReadableFile | None, chunk_log: int, /) -> BaoReader: ...
    @staticmethod
    def slice_decoder(file: ReadableFile, hash: Buffer, start: int, length: int, chunk_log: int, /) -> BaoReader: ...
    @staticmethod
    def slice_extractor(
        file: SeekableFile, start: int, length: int, outboard: SeekableFile | None, chunk_log: int, /
    ) -> BaoReader: ...
    def read(self, size: int, /) -> bytes: ...
    def seek(self, offset: int, whence: int, /) -> int: ...

@final
class BaoWriter:
    @staticmethod
    def combined(file: WritableFile, chunk_log: int, /) -> BaoWriter: ...
    @staticmethod
    def outboard(file: WritableFile, chunk_log: int, /) -> BaoWriter: ...
    def write(self, data: Buffer, /) -> int: ...
    def finalize(self) -> bytes: ...

@final
class SigningKey:
    def __new__(cls, seed: Buffer, /) -> Self: ...
    @staticmethod
    def generate() -> SigningKey: ...
    @staticmethod
    def from_pkcs8(data: Buffer | str, /) -> SigningKey: ...
    @property
    def public_key(self) -> bytes: ...
    def sign(self, message: Buffer, /) -> bytes: ...
    def to_bytes(self) -> bytes: ...
    def to_pkcs8(self) -> bytes: ...
    def to_pem(self) -> str: ...

def ed25519_sign_many(items: Iterable[tuple[SigningKey, Buffer]], /) -> list[bytes]: ...
def ed25519_verify_many(items: Iterable[tuple[Buffer, Buffer, Buffer]], /) -> bytes: ...
