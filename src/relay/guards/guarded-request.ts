import {
  type FoundText,
  requestTexts,
  type TextChange,
  decodeStringAt,
  applyTextChanges,
} from '@sluice/wire/guarded-texts'
import { scanObject, type ScanLimits } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { FormPart } from '@sluice/wire/multipart'
import type { Body, FormBody } from '../body-reader.ts'
import { type CallGuards, GuardBlock, type TextLocation } from './call-guards.ts'
import { checkFormTexts, checkRequestTexts } from './services/checked-request.ts'
import { CheckRefused } from './services/service-checks.ts'

/** Number of bytes from which a text is checked in pieces. */
const LONG_BYTES = 1024

/**
 * Checks the texts of a request. Resolves to the request with the texts that guards have changed; all other
 * bytes stay. Resolves to the same object if nothing changes. Rejects with `guard_blocked`, or with
 * `CheckCancelled`.
 */
export async function applyGuardsToScan(guards: CallGuards, scan: ScannedObject): Promise<ScannedObject> {
  const texts = requestTexts(scan).filter((found) => guards.screenOf(found))
  return refusing(guards, async () => {
    const changes = await changesOf(guards, scan.bytes, texts)
    const next = changes.length === 0 ? scan : scanObject(applyTextChanges(scan.bytes, changes))
    return guards.services ? checkRequestTexts(guards.services, next) : next
  })
}

/**
 * Checks the fields of a form that are not files. Resolves to its parts; those that guards have changed are
 * marked with `isChanged`.
 */
async function guardedParts(guards: CallGuards, parts: readonly FormPart[]): Promise<readonly FormPart[]> {
  return refusing(guards, async () => {
    const checked: FormPart[] = []
    for (const part of parts) {
      const next = isText(part) ? await longText(guards, part.text, { ...INPUT, isJson: false }) : part.text
      checked.push(next === part.text ? part : { ...part, text: next, isChanged: true })
    }
    return guards.services ? checkFormTexts(guards.services, checked, isText) : checked
  })
}

/**
 * Checks the body of a request. Resolves to the body to send on, which is the same object if nothing changes.
 * Rejects with `guard_blocked`, or with `CheckCancelled`.
 */
export async function guardedRequest(
  guards: CallGuards,
  body: Body | FormBody,
  limits: ScanLimits | undefined,
): Promise<Body | FormBody> {
  if ('parts' in body) {
    const parts = await guardedParts(guards, body.parts)
    return parts.some(({ isChanged }) => isChanged) ? { ...body, parts } : body
  }
  const scan = scanObject(body.bytes, limits)
  const { bytes } = await applyGuardsToScan(guards, scan)
  if (guards.pseudonyms.bytes > 0) body.hold(guards.pseudonyms.bytes)
  if (bytes === body.bytes) return body
  body.hold(bytes.length)
  return { ...body, bytes }
}

/** Whether a part of a form is free text, rather than a file or a setting. */
function isText(part: FormPart): part is FormPart & { readonly text: string } {
  const { text, name, filename } = part
  return text !== undefined && filename === undefined && !PLAIN_FIELDS.has(name)
}

const INPUT = { place: 'input', isSigned: false } as const
/** Fields of forms that are settings, not free text. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'n',
  'size',
  'quality',
  'response_format',
  'stream',
  'language',
  'background',
  'output_format',
])

async function refusing<Result>(guards: CallGuards, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof GuardBlock) throw guards.refusal(error)
    throw error instanceof CheckRefused ? error.refusal : error
  }
}

async function changesOf(
  guards: CallGuards,
  bytes: Buffer,
  texts: readonly FoundText[],
): Promise<TextChange[]> {
  const changes: TextChange[] = []
  const { turns } = guards
  for (const found of texts) {
    const { from, to } = found
    const place = guards.screenOf(found)
    const name = place && guards.known.nameOf(place.screen, bytes.subarray(from, to), found.isJson)
    if (place && name !== undefined && guards.known.has(name)) {
      guards.record(place, [], found.isSigned, 0)
      continue
    }
    const before = guards.matches
    const checked =
      to - from > LONG_BYTES
        ? longChange(guards, bytes, found)
        : turns.check(() => changeOf(guards, bytes, found))
    const change = checked instanceof Promise ? await checked : checked
    if (change) changes.push(change)
    else if (name !== undefined && guards.matches === before) guards.known.add(name)
  }
  return changes
}

// A long text is checked in pieces, so that other calls can run in between.
async function longChange(
  guards: CallGuards,
  bytes: Buffer,
  found: FoundText,
): Promise<TextChange | undefined> {
  const text = decodeStringAt(bytes, found.from, found.to)
  const checked = await longText(guards, text, found)
  return checked === text ? undefined : { from: found.from, to: found.to, text: JSON.stringify(checked) }
}

async function longText(
  guards: CallGuards,
  text: string,
  spot: TextLocation & { isJson: boolean },
): Promise<string> {
  const step = guards.requestSteps(text, spot)
  return step ? guards.turns.checkLong(text, step) : text
}

function changeOf(guards: CallGuards, bytes: Buffer, found: FoundText): TextChange | undefined {
  const { from, to, isJson } = found
  const text = decodeStringAt(bytes, from, to)
  const checked = isJson ? guards.checkRequestJson(text, found) : guards.checkRequest(text, found)
  return checked === text ? undefined : { from, to, text: JSON.stringify(checked) }
}
