import { GatewayError } from '../errors.ts'

/**
 * Throws `invalid_request` if a value is a text with a NUL character. PostgreSQL cannot store it, and tools
 * that read a SQLite file end the text there. Both databases refuse it, so that they behave the same.
 */
export function refuseNul(values: readonly unknown[]): void {
  for (const value of values) {
    if (typeof value === 'string' && value.includes('\0')) {
      throw new GatewayError('invalid_request', 'text may not contain the character NUL (U+0000)')
    }
  }
}
