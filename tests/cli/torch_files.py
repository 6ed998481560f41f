# Writes PyTorch's files without PyTorch, in both formats and with every protocol: pickles of stand-ins.
import io
import pickle
import struct
import sys
import types
import zipfile

OLD_START = [0x1950A86A20F9469CFC6C, 1001,
             {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4}}]


def stand_in(module, name):
    """What a pickle calls module.name."""
    parts = module.split(".")
    for i in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(module))
    if not hasattr(sys.modules[module], name):
        made = type(name, (), {"__module__": module, "__qualname__": name})
        setattr(sys.modules[module], name, made)
    return getattr(sys.modules[module], name)


class Storage:
    def __init__(self, kind, raw, width, memory=None):
        self.kind, self.raw, self.elements = kind, raw, len(raw) // width
        self.memory = memory or self  # the storage whose bytes these are


class Call:
    """An object that a pickle makes by a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def Tensor(storage, offset, shape, strides):
    """A view of a storage: offset, shape and strides count elements."""
    return Call(stand_in("torch._utils", "_rebuild_tensor_v2"), storage, offset, shape, strides, False, {})


def contiguous(kind, width, shape, raw):
    strides, count = [], 1
    for extent in reversed(shape):
        strides.insert(0, count)
        count *= extent
    return Tensor(Storage(kind, raw, width), 0, tuple(shape), tuple(strides))


class Pickler(pickle.Pickler):
    def __init__(self, file, protocol):
        super().__init__(file, protocol)
        self.storages = []

    def persistent_id(self, obj):
        if not isinstance(obj, Storage):
            return None
        if obj.memory not in self.storages:
            self.storages.append(obj.memory)
        return ("storage", stand_in("torch", obj.kind), str(self.storages.index(obj.memory)), "cpu",
                obj.elements) + self.more

    more = ()


def pickled(obj, protocol=2, more=()):
    """(the pickle, its storages)"""
    file = io.BytesIO()
    pickler = Pickler(file, protocol)
    pickler.more = more
    pickler.dump(obj)
    return file.getvalue(), pickler.storages


def write_zip(path, obj, protocol=2):
    data, storages = pickled(obj, protocol)
    write_archive(path, data, [storage.raw for storage in storages])
    return path


def write_archive(path, data, storages=()):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/data.pkl", data)
        for i, raw in enumerate(storages):
            archive.writestr(f"m/data/{i}", raw)
    return path


def write_old(path, obj, protocol=2):
    data, storages = pickled(obj, protocol, (None,))
    with open(path, "wb") as file:
        for start in OLD_START:
            pickle.dump(start, file, protocol)
        file.write(data)
        pickle.dump([str(i) for i in range(len(storages))], file, protocol)
        for storage in storages:
            file.write(struct.pack("<q", storage.elements) + storage.raw)
    return path
