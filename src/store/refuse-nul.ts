import { GatewayError } from '../errors.ts'

/**
 * Refuses values of which one is text that holds NUL: PostgreSQL cannot keep it, and tools that read a SQLite
 * file cut it there. What the databases do not share is better refused by both.
 */
export function refuseNul(values: readonly unknown[]): void {
  for (const value of values) {
    if (typeof value === 'string' && value.includes('\0')) {
      throw new GatewayError('invalid_request', 'text may not contain the character NUL (U+0000)')
    }
  }
}
