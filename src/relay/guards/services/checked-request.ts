import { findToolCallsAndImages } from '@sluice/wire/tool-calls-and-images'
import {
  type FoundText,
  requestTexts,
  type TextChange,
  type TextPlace,
  decodeStringAt,
  applyTextChanges,
} from '@sluice/wire/guarded-texts'
import { type FileFacts, mayBeFile, type Reading, readingsOf } from '@sluice/wire/guarded-values'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { CheckedText, ServiceChecks } from './service-checks.ts'

/** A part of a value of the request that is checked as a text, and where the value is. */
interface ReadText {
  readonly found: FoundText
  readonly reading: Reading | undefined
  readonly text: string
}

/**
 * Has services check the texts of a request. Resolves to the request to send on, which is the same object if
 * nothing changes. Rejects like `ServiceChecks.check`.
 */
export async function checkRequestTexts(checks: ServiceChecks, scan: ScannedObject): Promise<ScannedObject> {
  const found = requestTexts(scan).filter(({ place }) => checks.concerns(place))
  const read = found.flatMap((one) => readTexts(scan.bytes, one))
  const texts = read.map(({ found: one, text }): CheckedText => ({ ...one, text }))
  const next = await checks.check({ texts, ...findToolCallsAndImages(scan), side: 'request' })
  const values = new Map<FoundText, string>()
  for (const [index, { found: one, reading, text }] of read.entries()) {
    const checked = next[index]
    if (checked === undefined || checked === text) continue
    const value = values.get(one) ?? decodeStringAt(scan.bytes, one.from, one.to)
    values.set(one, reading ? (reading(value, one.file ?? NO_FACTS)?.write(checked) ?? checked) : checked)
  }
  const changes = [...values].map(
    ([{ from, to }, value]): TextChange => ({ from, to, text: JSON.stringify(value) }),
  )
  return changes.length === 0 ? scan : scanObject(applyTextChanges(scan.bytes, changes))
}

function readTexts(bytes: Buffer, found: FoundText): ReadText[] {
  const value = decodeStringAt(bytes, found.from, found.to)
  if (!mayBeFile(bytes, found)) return [{ found, reading: undefined, text: value }]
  return readingsOf(value, found.kind).flatMap((reading) => {
    const text = reading(value, found.file ?? NO_FACTS)?.text
    return text === undefined ? [] : [{ found, reading, text }]
  })
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
