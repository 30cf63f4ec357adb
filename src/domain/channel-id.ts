import { createHash } from 'node:crypto'

/** The first id of declared channels; ids of stored channels are lower. */
export const FIRST_DECLARED_ID = 1_000_000_000

/** The id of a declared channel: a hash of its name, so that it survives restarts. */
export function declaredId(name: string): number {
  return FIRST_DECLARED_ID + createHash('sha256').update(name).digest().readUIntBE(0, 6)
}
