import { findToolCallsAndImages } from '@sluice/wire/tool-calls-and-images'
import { requestTexts, type TextChange, decodeStringAt, applyTextChanges } from '@sluice/wire/guarded-texts'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { FormPart } from '@sluice/wire/multipart'
import type { CheckedText, ServiceChecks } from './service-checks.ts'

/**
 * Has services check the texts of a request. Resolves to the request to send on, which is the same object if
 * nothing changes. Rejects like `ServiceChecks.check`.
 */
export async function checkRequestTexts(checks: ServiceChecks, scan: ScannedObject): Promise<ScannedObject> {
  const found = requestTexts(scan).filter(({ place }) => checks.concerns(place))
  const texts = found.map(
    (one): CheckedText => ({ ...one, text: decodeStringAt(scan.bytes, one.from, one.to) }),
  )
  const next = await checks.check({ texts, ...findToolCallsAndImages(scan), side: 'request' })
  const changes = found.flatMap(({ from, to }, index): TextChange[] => {
    const text = next[index]
    return text === undefined || text === texts[index]?.text ? [] : [{ from, to, text: JSON.stringify(text) }]
  })
  return changes.length === 0 ? scan : scanObject(applyTextChanges(scan.bytes, changes))
}

/**
 * Has services check the texts of a form. Resolves to its parts; those that were changed are marked with
 * `isChanged`.
 */
export async function checkFormTexts(
  checks: ServiceChecks,
  parts: readonly FormPart[],
  isText: (part: FormPart) => part is FormPart & { readonly text: string },
): Promise<readonly FormPart[]> {
  const found = parts.filter(isText)
  const texts = found.map(
    ({ text }): CheckedText => ({ text, place: 'input', isSigned: false, isJson: false }),
  )
  const next = await checks.check({ texts, calls: [], images: [], side: 'request' })
  const changed = new Map<FormPart, string | undefined>(found.map((part, index) => [part, next[index]]))
  return parts.map((part) => {
    const text = changed.get(part)
    return text === undefined || text === part.text ? part : { ...part, text, isChanged: true }
  })
}
