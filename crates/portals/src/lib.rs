//! portals
