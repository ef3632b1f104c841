//! 304, 206, 204, 412 and 416 where nobody asked for them.
