import { createHash } from 'node:crypto'

/** The lowest id of channels declared in gateway.yaml; channels in the database have lower ids. */
export const FIRST_DECLARED_ID = 1_000_000_000

/**
 * The id of a channel declared in gateway.yaml: a hash of its name, so that it is the same after each start.
 */
export function declaredId(name: string): number {
  return FIRST_DECLARED_ID + createHash('sha256').update(name).digest().readUIntBE(0, 6)
}
