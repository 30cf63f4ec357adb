import { randomBytes } from 'node:crypto'

/** Makes a random name for a new installation: 16 hexadecimal digits. */
export function newInstallationName(): string {
  return randomBytes(8).toString('hex')
}
