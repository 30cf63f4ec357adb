/** Reports whether `others` stand in `bytes` at `start`. */
export function hasBytesAt(bytes: Buffer, start: number, others: Buffer): boolean {
  for (let i = 0; i < others.length; i++) if (bytes[start + i] !== others[i]) return false
  return true
}
