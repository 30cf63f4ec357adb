/** Stand-in for an image, which counts about as much as this many characters, whatever its size. */
export const IMAGE = '[image]'.padEnd(1200, '.')
