/** Bytes in chunks of one size. */
export function chopped(bytes: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    bytes.subarray(i * size, (i + 1) * size),
  )
}

/** Bytes in chunks of one to `max` bytes, at random. */
export function choppedAtRandom(bytes: Buffer, max: number, random: () => number): Buffer[] {
  const chunks: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + Math.floor(random() * max)
    chunks.push(bytes.subarray(at, at + size))
    at += size
  }
  return chunks
}
