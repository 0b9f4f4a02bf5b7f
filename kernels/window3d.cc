#include "kernels/window3d.h"

namespace fuselite::kernels {

Result<Window3D> ResolveWindow3D(const WindowRequest3D& r) {
  FUSELITE_ASSIGN_OR_RETURN(const Window plane, ResolveWindow({.input_h = r.input[1],
                                                               .input_w = r.input[2],
                                                               .filter_h = r.filter[1],
                                                               .filter_w = r.filter[2],
                                                               .stride_h = r.stride[1],
                                                               .stride_w = r.stride[2],
                                                               .dilation_h = r.dilation[1],
                                                               .dilation_w = r.dilation[2],
                                                               .padding = r.padding}));
  FUSELITE_ASSIGN_OR_RETURN(const Window depth, ResolveWindow({.input_h = r.input[0],
                                                               .input_w = 1,
                                                               .filter_h = r.filter[0],
                                                               .stride_h = r.stride[0],
                                                               .dilation_h = r.dilation[0],
                                                               .padding = r.padding}));
  return Window3D{{depth.y, plane.y, plane.x}};
}

}  // namespace fuselite::kernels
