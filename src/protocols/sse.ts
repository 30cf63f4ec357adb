/** The bytes of one event that are read at most. */
export const MAX_EVENT_BYTES = 1_048_576

/** Complete frames in one buffer: frame i is `bytes.subarray(ends[i - 1] ?? 0, ends[i])`, its blank line included. */
export interface Frames {
  readonly bytes: Buffer
  readonly ends: readonly number[]
}

/** Splits server-sent events at blank lines, wherever the network cut them. Throws `upstream_error` above the cap. */
export class FrameSplitter {
  constructor(_maxEventBytes = MAX_EVENT_BYTES) {}

  push(_chunk: Buffer): Frames {
    throw new Error('not yet')
  }

  /** The bytes of a frame that never became whole. */
  end(): Buffer {
    throw new Error('not yet')
  }
}

/** The `data` of a frame by the rules of the event stream format; undefined where it has none. */
export function dataOf(_frame: string): string | undefined {
  throw new Error('not yet')
}
