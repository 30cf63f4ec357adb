import type { Secrets } from './secrets.ts'

/** Throws a sentence for the operator unless the stored check value belongs to these secrets. */
export function refuseOtherSecret(kept: string | undefined, secrets: Secrets): void {
  if (kept === secrets.check) return
  throw new Error(
    'this database was made with another secret, and its keys cannot be read with this one: set GATEWAY_SECRET to the ' +
      'secret that it was made with, or, if none was set, put the file "secret" of its data folder back',
  )
}
