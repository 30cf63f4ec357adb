/** What a JSON value is, seen from its first byte. */
export type JsonKind = 'string' | 'number' | 'object' | 'array' | 'true' | 'false' | 'null'

/** Bounds on what is accepted: nesting, and values of any kind (keys are not counted). */
export interface ScanLimits {
  readonly depth: number
  readonly nodes: number
}

/** The bounds for a relay body. */
export const JSON_LIMITS: ScanLimits = { depth: 128, nodes: 200_000 }

/** One top-level member: byte offsets into the scanned bytes, ends exclusive. */
export interface Member {
  readonly key: string
  /** The opening quote of the key. */
  readonly keyStart: number
  /** The value's first byte, and the one after its last. */
  readonly start: number
  readonly end: number
  readonly kind: JsonKind
  /** Elements of an array, members of an object, else 0. */
  readonly count: number
}

/** A JSON object whose top level is known by position; the rest is known to be valid. */
export class ScannedObject {
  readonly bytes: Buffer
  readonly members: ReadonlyMap<string, Member>

  constructor(bytes: Buffer, members: ReadonlyMap<string, Member>) {
    this.bytes = bytes
    this.members = members
  }

  has(key: string): boolean {
    return this.members.has(key)
  }

  span(key: string): Member | undefined {
    return this.members.get(key)
  }

  /** JSON.parse of that one value, done once; undefined where the key is absent. */
  value(_key: string): unknown {
    throw new Error('not yet')
  }
}

/**
 * Reads a JSON object strictly: what JSON.parse refuses is refused, and duplicate top-level keys, and what goes beyond
 * the limits. Throws `invalid_json` with the byte position and what was expected there.
 */
export function scanObject(_bytes: Buffer, _limits: ScanLimits = JSON_LIMITS): ScannedObject {
  throw new Error('not yet')
}
