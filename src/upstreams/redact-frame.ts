import type { Channel } from '../domain/records/channel.ts'
import { redact } from './redact.ts'

/** A JSON string literal, the text between two, or an unterminated literal. */
const PIECE = /"[^"\\]*(?:\\.[^"\\]*)*"|[^"]+|".*/gs

/** Redacts an upstream's error. Only strings that contain the channel's keys or address are changed. */
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

/** Value of a string literal; undefined if the piece is not one. */
function valueOf(piece: string): string | undefined {
  if (!piece.startsWith('"')) return undefined
  try {
    return JSON.parse(piece) as string
  } catch {
    return undefined
  }
}
