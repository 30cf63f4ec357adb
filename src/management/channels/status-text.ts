import type { Json } from '../../domain/json.ts'
import { parseRecord } from '@sluice/wire/json/record'

/** Whether an entry of a tool's mapping maps one error status to another. */
export function isMappedStatus(from: string, to: unknown): boolean {
  return isErrorStatus(from) && isErrorStatus(String(to))
}

/** The statuses that a tool maps to others, in the format of gateway.yaml; other entries are omitted. */
export function statusesIn(mapping: string): Record<string, Json> {
  const entries = Object.entries(parseRecord(mapping) ?? {}).flatMap(([from, to]) =>
    isMappedStatus(from, to) ? [[from, Number(to)] as const] : [],
  )
  return entries.length > 0 ? { status_mapping: Object.fromEntries(entries) } : {}
}

function isErrorStatus(text: string): boolean {
  return /^[45]\d\d$/.test(text)
}
