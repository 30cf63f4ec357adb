import type { ToolKind } from '../../domain/tool-use.ts'
import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'
import { type ToolTally, usesOf } from '../tool-tally.ts'
import { partsOf } from './answer.ts'

/**
 * Notes the uses of the provider's tools that a chunk tells, in all its candidates. Chunks may repeat what
 * earlier ones told: the largest number of each kind counts.
 */
export function noteTools(tally: ToolTally, { candidates }: Fields): void {
  if (!Array.isArray(candidates)) return
  const totals = new Map<ToolKind, number>()
  for (const value of candidates as readonly unknown[]) {
    const candidate = asRecord(value)
    if (!candidate) continue
    for (const [kind, count] of usesIn(candidate)) totals.set(kind, (totals.get(kind) ?? 0) + count)
  }
  // All that was executed ran in one place.
  if (totals.has('code_execution')) totals.set('code_execution', 1)
  for (const [kind, count] of totals) {
    if (count > usesOf(tally.uses, kind)) tally.note(kind, { kind, count })
  }
}

function usesIn(candidate: Fields): (readonly [ToolKind, number])[] {
  const grounding = asRecord(candidate['groundingMetadata'])
  const address = asRecord(candidate['urlContextMetadata'])
  const executed = partsOf(candidate).some((part) => asRecord(asRecord(part)?.['executableCode']))
  if (!grounding && !address && !executed) return []
  const chunks = listOf(grounding?.['groundingChunks']).map((chunk) => asRecord(chunk))
  const cites = (name: string): boolean => chunks.some((chunk) => chunk?.[name] !== undefined)
  const isMapped = cites('maps') || grounding?.['googleMapsWidgetContextToken'] !== undefined
  const uses: (readonly [ToolKind, number])[] = [
    ['web_search', Math.max(listOf(grounding?.['webSearchQueries']).length, cites('web') ? 1 : 0)],
    ['google_maps', isMapped ? 1 : 0],
    ['file_search', cites('retrievedContext') ? 1 : 0],
    ['url_context', listOf(address?.['urlMetadata']).length],
    ['code_execution', executed ? 1 : 0],
  ]
  return uses.filter(([, count]) => count > 0)
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
