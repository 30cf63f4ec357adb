/** Whether `bytes` contains `others` at the offset `start`. */
export function hasBytesAt(bytes: Buffer, start: number, others: Buffer): boolean {
  for (let i = 0; i < others.length; i++) if (bytes[start + i] !== others[i]) return false
  return true
}
