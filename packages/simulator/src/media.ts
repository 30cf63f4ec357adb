/**
 * Text that stands for an image in a prompt. An image costs as much as this many characters, regardless of
 * its size.
 */
export const IMAGE_PLACEHOLDER = '[image]'.padEnd(1200, '.')
