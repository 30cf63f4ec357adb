import type { Channel } from '../domain/channel.ts'
import { redact } from './redact.ts'

/** A string literal of JSON, what lies between two, or all that follows a quote without another. */
const PIECE = /"[^"\\]*(?:\\.[^"\\]*)*"|[^"]+|".*/gs

/** The bytes of an upstream's error, changed only in the strings that name our keys or its address. */
export function redactFrame(bytes: Buffer, channel: Channel): Buffer {
  let isChanged = false
  const redacted = bytes.toString().replaceAll(PIECE, (piece) => {
    const value = valueOf(piece)
    const text = value ?? piece
    const result = redact(text, channel)
    if (result === text) return piece
    isChanged = true
    return value === undefined ? result : JSON.stringify(result)
  })
  return isChanged ? Buffer.from(redacted) : bytes
}

/** A literal's value; undefined where the piece is none. */
function valueOf(piece: string): string | undefined {
  if (!piece.startsWith('"')) return undefined
  try {
    return JSON.parse(piece) as string
  } catch {
    return undefined
  }
}
