import { asRecord } from '../json/record.ts'

/** Members of an item, and of objects inside it, that the model wrote. */
const TEXTS = [
  'name',
  'arguments',
  'input',
  'code',
  'text',
  'refusal',
  'transcript',
  'query',
  'diff',
] as const
const LISTS = ['summary', 'content'] as const
const OBJECTS = ['action', 'operation'] as const

/** Text that the model wrote in an output item; only non-empty pieces. */
export function generatedText(item: unknown): string[] {
  const record = asRecord(item)
  if (!record) return []
  const pieces = TEXTS.map((key) => record[key])
  const lists = LISTS.flatMap((key) => (Array.isArray(record[key]) ? (record[key] as unknown[]) : []))
  const objects = OBJECTS.map((key) => record[key])
  const action = asRecord(record['action'])
  for (const key of ['command', 'commands'] as const) {
    const words = action?.[key]
    if (Array.isArray(words)) pieces.push(...(words as unknown[]))
  }
  return [
    ...pieces.filter((piece): piece is string => typeof piece === 'string' && piece !== ''),
    ...[...lists, ...objects].flatMap(generatedText),
  ]
}
