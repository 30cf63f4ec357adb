/** Placeholder for an image, which costs about as much as this many characters, regardless of its size. */
export const IMAGE_PLACEHOLDER = '[image]'.padEnd(1200, '.')
