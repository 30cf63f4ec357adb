import { randomBytes } from 'node:crypto'

/** A new name of an installation: 16 hex digits. */
export function newInstallation(): string {
  return randomBytes(8).toString('hex')
}
