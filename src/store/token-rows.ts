import { TOKEN, type Token, type TokenRow } from '../domain/records/token.ts'
import { termsFromRow } from './term-columns.ts'

/** Converts a stored token, without its key. */
export function tokenFromRow(row: Omit<TokenRow, 'key_hash' | 'key_cipher'>): Token {
  return { ...TOKEN.fromRow(row), ...termsFromRow(row) }
}
