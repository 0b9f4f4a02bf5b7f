// Every rewrite: one file each, named as the function.
#pragma once

#include "fusion/rewrite.h"

namespace fuselite::fusion {

// A node whose inputs are all constant becomes constants, computed by the reference. Not where
// that would make much of little (a broadcast of a scalar).
bool FoldConstants(Graph&, const Uses&, NodeId, RewriteContext&);

// A node that gives its input unchanged goes away: PAD by nothing, SLICE of everything, TRANSPOSE
// that moves only dimensions of size 1 of equal shape, CAST to its own type, MUL by 1, ADD of 0,
// RESHAPE to the same shape.
bool RemoveIdentity(Graph&, const Uses&, NodeId, RewriteContext&);

// Of RESHAPE, SQUEEZE and EXPAND_DIMS in a row the last one remains.
bool MergeReshapes(Graph&, const Uses&, NodeId, RewriteContext&);

// PAD with zeros before a convolution or depthwise convolution becomes its extra padding.
bool FoldPadding(Graph&, const Uses&, NodeId, RewriteContext&);

// An elementwise node becomes stages in the tail of the node that makes one of its operands: the
// activation, residual, scale or gate after a convolution, and chains of elementwise nodes.
bool FuseIntoTail(Graph&, const Uses&, NodeId, RewriteContext&);

// Nodes whose outputs nobody reads; how many went.
int RemoveDeadNodes(Graph&);

}  // namespace fuselite::fusion
