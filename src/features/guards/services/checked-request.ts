import { findToolCallsAndImages } from '@sluice/wire/tool-calls-and-images'
import {
  type FoundText,
  type TextChange,
  type TextPlace,
  decodeStringAt,
  applyTextChanges,
} from '@sluice/wire/found-texts'
import {
  type FileFacts,
  type FileWithin,
  mayBeFile,
  type Reading,
  readingsOf,
  withFiles,
} from '@sluice/wire/files-in-values'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { readFilesWithin } from '../files-within.ts'
import { atOnce } from '../check-steps.ts'
import type { CheckTurns } from '../../../call/check-turns.ts'
import type { CheckedText, ServiceChecks } from './service-checks.ts'

/** A part of a value of the request that is checked as a text, and where the value is. */
interface ReadText {
  readonly found: FoundText
  readonly text: string
  /** How the value is read; a file within it; or undefined for a value that is a text as it stands. */
  readonly part: Reading | FileWithin | undefined
}

/**
 * Has services check the texts that were found in a request. Resolves to the request to send on, which is the same object if
 * nothing changes. Rejects like `ServiceChecks.check`.
 */
export async function checkRequestTexts(
  checks: ServiceChecks,
  scan: ScannedObject,
  found: readonly FoundText[],
  turns: CheckTurns,
): Promise<ScannedObject> {
  const read: ReadText[] = []
  for (const one of found)
    if (checks.concerns(one.place)) read.push(...(await readTexts(scan.bytes, one, turns)))
  const texts = read.map(({ found: one, text }): CheckedText => ({ ...one, text }))
  const next = await checks.check({ texts, ...findToolCallsAndImages(scan), side: 'request' })
  const changed = new Map<FoundText, (readonly [ReadText, string])[]>()
  for (const [index, one] of read.entries()) {
    const checked = next[index]
    if (checked === undefined || checked === one.text) continue
    changed.set(one.found, [...(changed.get(one.found) ?? []), [one, checked]])
  }
  const changes = [...changed].map(
    ([one, parts]): TextChange => ({
      from: one.from,
      to: one.to,
      text: JSON.stringify(changedValue(decodeStringAt(scan.bytes, one.from, one.to), one, parts)),
    }),
  )
  return changes.length === 0 ? scan : scanObject(applyTextChanges(scan.bytes, changes), RESPONSE_LIMITS)
}

function changedValue(
  value: string,
  { file = NO_FACTS }: FoundText,
  parts: readonly (readonly [ReadText, string])[],
): string {
  const within = parts.flatMap(([{ part }, checked]) =>
    typeof part === 'object' ? [{ ...part, written: part.write(checked) }] : [],
  )
  let next = withFiles(value, within)
  for (const [{ part }, checked] of parts)
    if (typeof part === 'function') next = atOnce(part(next, file))?.write(checked) ?? checked
    else if (part === undefined) next = checked
  return next
}

async function readTexts(bytes: Buffer, found: FoundText, turns: CheckTurns): Promise<ReadText[]> {
  const value = decodeStringAt(bytes, found.from, found.to)
  if (!mayBeFile(bytes, found)) return [{ found, part: undefined, text: value }]
  const read: ReadText[] = []
  for (const part of readingsOf(value, found.kind)) {
    const reading = await turns.run(part(value, found.file ?? NO_FACTS))
    if (reading) read.push({ found, part, text: reading.text })
  }
  const files = await readFilesWithin(value, found.kind, turns)
  return [...read, ...files.map((part): ReadText => ({ found, part, text: part.text }))]
}

const NO_FACTS: FileFacts = { mediaType: '', name: '' }

/**
 * Has services check further texts of a request, such as the fields of a form. Resolves to the texts to send on.
 * Rejects like `ServiceChecks.check`.
 */
export async function checkTexts(
  checks: ServiceChecks,
  texts: readonly string[],
  place: TextPlace = 'input',
): Promise<readonly string[]> {
  if (!checks.concerns(place)) return texts
  const given = texts.map((text): CheckedText => ({ text, place, isSigned: false, isJson: false }))
  return checks.check({ texts: given, calls: [], images: [], side: 'request' })
}
