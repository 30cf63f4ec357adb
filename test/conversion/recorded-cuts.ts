import { randomFrom } from '../fixtures/random.ts'
import { choppedAtRandom } from '../generators/chunks.ts'

/**
 * A recorded stream in chunks of at most 1, 301 and 601 bytes; one of more than `maxBytes` is not divided
 * into single bytes.
 */
export function recordedCuts(bytes: Buffer, maxBytes: number): Buffer[][] {
  return [0, 1, 2]
    .filter((seed) => seed > 0 || bytes.length <= maxBytes)
    .map((seed) => choppedAtRandom(bytes, 1 + seed * 300, randomFrom(seed)))
}
