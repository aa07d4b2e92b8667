// Carries the precompiled torch header; see cmake/torch.cmake.
