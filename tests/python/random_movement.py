"""Steps that move elements: each takes a value of rank 4 and adds others."""

import numpy as np
from random_values import RandomValues


class Movement(RandomValues):
    def concat(self, x):
        axis = self.pick([3, 3, 3, 1, 2])
        fits = [
            v
            for v in self.values
            if len(v.shape) == 4 and all(a == b for i, (a, b) in enumerate(zip(v.shape, x.shape)) if i != axis)
        ]
        parts = [self.pick(fits) for _ in range(self.int(1, 3))] + [x]
        self.rng.shuffle(parts)
        if self.dtype in (np.int8, np.int16):  # TFLite wants one scale here
            parts = [p for p in parts if (p.scale, p.zero_point) == (x.scale, x.zero_point)]
        shape = list(x.shape)
        shape[axis] = sum(p.shape[axis] for p in parts)
        self.add(
            self.g.op(
                "CONCATENATION",
                parts,
                tuple(shape),
                "ConcatenationOptions",
                2 if self.quantized else 1,
                axis=axis - self.pick([0, 4]),
                like=x,
            )
        )

    def split(self, x):
        axis = self.pick([1, 2, 3, 3])
        counts = [d for d in range(1, 5) if x.shape[axis] % d == 0]
        count = self.pick(counts)
        shape = list(x.shape)
        shape[axis] //= count
        parts = self.g.op(
            "SPLIT",
            [self.g.constant(np.array(axis, np.int32)), x],
            [tuple(shape)] * count,
            "SplitOptions",
            2 if self.quantized else 1,
            numSplits=count,
            like=x,
        )
        for part in parts:
            self.add(part)
        if self.chance(0.5):
            parts = parts[::-1]
            self.add(
                self.g.op(
                    "CONCATENATION",
                    parts,
                    x.shape,
                    "ConcatenationOptions",
                    2 if self.quantized else 1,
                    axis=axis,
                    like=x,
                )
            )

    def slice(self, x):
        begin = [self.int(0, d - 1) for d in x.shape]
        size = [self.int(1, d - b) for b, d in zip(begin, x.shape)]
        if self.chance(0.5):
            self.add(
                self.g.op(
                    "SLICE",
                    [x, self.indices(begin), self.indices(size)],
                    tuple(size),
                    "SliceOptions",
                    2 if self.quantized else 1,
                )
            )
        else:
            end, strides = [b + s for b, s in zip(begin, size)], [1, self.int(1, 2), self.int(1, 2), self.int(1, 3)]
            shape = tuple(-(-s // t) for s, t in zip(size, strides))
            self.add(
                self.g.op(
                    "STRIDED_SLICE",
                    [x, self.indices(begin), self.indices(end), self.indices(strides)],
                    shape,
                    "StridedSliceOptions",
                    2 if self.quantized else 1,
                )
            )

    def resize(self, x):
        size = (self.int(1, 14), self.int(1, 14))
        name, options = self.pick(
            [
                ("RESIZE_BILINEAR", "ResizeBilinearOptions"),
                ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
            ]
        )
        corners = self.chance(0.3)
        self.add(
            self.g.op(
                name,
                [x, self.indices(size)],
                (x.shape[0], *size, x.shape[3]),
                options,
                3,
                alignCorners=corners,
                halfPixelCenters=not corners and self.chance(0.5),
            )
        )

    def transpose(self, x):
        order = self.rng.permutation(4)
        self.add(
            self.g.op(
                "TRANSPOSE",
                [x, self.indices(order)],
                tuple(x.shape[i] for i in order),
                "TransposeOptions",
                2 if self.quantized else 1,
            )
        )

    def reshape(self, x):
        n, h, w, c = x.shape
        self.add(
            self.reshape_to(
                x,
                self.pick([(n, h * w, 1, c), (n, w, h, c), (1, n * h, w, c), (n, h, w * c, 1), (n, 1, 1, h * w * c)]),
            )
        )

    def blocks(self, x):
        if self.dtype == np.int16:
            return
        n, h, w, c = x.shape
        if h % 2 == 0 and w % 2 == 0 and self.chance(0.5):
            self.add(
                self.g.op(
                    "SPACE_TO_DEPTH",
                    [x],
                    (n, h // 2, w // 2, c * 4),
                    "SpaceToDepthOptions",
                    2 if self.quantized else 1,
                    blockSize=2,
                )
            )
        elif c % 4 == 0:
            self.add(self.g.op("DEPTH_TO_SPACE", [x], (n, h * 2, w * 2, c // 4), "DepthToSpaceOptions", 1, blockSize=2))

    def tile(self, x):
        counts = [self.int(1, 2) for _ in x.shape]
        self.add(
            self.g.op(
                "TILE",
                [x, self.indices(counts)],
                tuple(a * b for a, b in zip(x.shape, counts)),
                "TileOptions",
                2 if self.quantized else 1,
            )
        )

    def mirror_pad(self, x):
        mode = self.int(0, 1)
        pads = [[self.int(0, min(2, d - 1 + mode)) for _ in range(2)] for d in x.shape]
        self.add(
            self.g.op(
                "MIRROR_PAD",
                [x, self.indices(pads)],
                tuple(d + sum(p) for d, p in zip(x.shape, pads)),
                "MirrorPadOptions",
                2 if self.quantized else 1,
                mode=mode,
            )
        )

    def gather(self, x):
        axis = self.int(0, 3)
        places = [self.int(0, x.shape[axis] - 1) for _ in range(self.int(1, 6))]
        shape = (*x.shape[:axis], len(places), *x.shape[axis + 1 :])
        self.add(self.g.op("GATHER", [x, self.indices(places)], shape, "GatherOptions", 2 if self.quantized else 1, axis=axis))

    def pack(self, x):
        count, axis = self.int(1, 3), self.int(0, 4)
        like = [v for v in self.values if v.shape == x.shape and (v.scale, v.zero_point) == (x.scale, x.zero_point)]
        shape = (*x.shape[:axis], count, *x.shape[axis:])
        packed = self.g.op(
            "PACK",
            [self.pick(like) for _ in range(count)],
            shape,
            "PackOptions",
            2 if self.quantized else 1,
            valuesCount=count,
            axis=axis,
        )
        along = self.int(0, 4)
        for part in self.g.op(
            "UNPACK",
            [packed],
            [tuple(d for i, d in enumerate(shape) if i != along)] * shape[along],
            "UnpackOptions",
            2 if self.quantized else 1,
            num=shape[along],
            axis=along,
        )[:8]:
            self.add(part)
