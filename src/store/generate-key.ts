import { randomInt } from 'node:crypto'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const LENGTH = 48

/** Generates an API key without `sk-`: 48 letters and digits, more than 285 bits. */
export function generateKey(): string {
  return Array.from({ length: LENGTH }, () => BASE62[randomInt(BASE62.length)]).join('')
}
