import { asRecord } from '../json/record.ts'

/** Text that the model wrote in a part: text, thoughts, calls and code; only non-empty pieces. */
export function generatedText(part: unknown): string[] {
  const record = asRecord(part)
  if (!record) return []
  const call = asRecord(record['functionCall'])
  const args = call?.['args'] ?? call?.['partialArgs']
  return [
    record['text'],
    call?.['name'],
    args === undefined ? undefined : JSON.stringify(args),
    asRecord(record['executableCode'])?.['code'],
  ].filter((piece): piece is string => typeof piece === 'string' && piece !== '')
}
