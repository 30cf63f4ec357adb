import { type FoundText, type TextChange, decodeStringAt, applyTextChanges } from '@sluice/wire/found-texts'
import {
  asItStands,
  type FileChange,
  type FileFacts,
  mayBeFile,
  readingsOf,
  type ValueKind,
  withFiles,
} from '@sluice/wire/files-in-values'
import { requestTexts } from '@sluice/wire/text-finder'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Shape } from '@sluice/wire/shape/define-shape'
import type { JsonRequest } from '../../call/parse-request.ts'
import { readFilesWithin } from './files-within.ts'
import type { CallGuards, TextLocation, TextSpot } from './call-guards.ts'
import { GuardBlock } from './active-guard.ts'
import { checkRequestTexts } from './services/checked-request.ts'
import { CheckRefused } from './services/service-checks.ts'

/** Length from which a text is checked in pieces. */
const LONG_LENGTH = 1024

/**
 * Checks the texts of a request. Resolves to the request with the texts that guards have changed; all other
 * bytes stay. Resolves to the same object if nothing changes. Rejects with `guard_blocked`, or with
 * `CheckCancelled`.
 */
export async function applyGuardsToScan(
  guards: CallGuards,
  scan: ScannedObject,
  shape: Shape,
): Promise<ScannedObject> {
  const { texts, hasTokenIds } = requestTexts(scan, shape)
  return refusing(guards, async () => {
    if (hasTokenIds) guards.failedRequest('input')
    const checked = texts.filter((found) => guards.screenOf(found))
    const changes = await changesOf(guards, scan.bytes, checked)
    const isChanged = changes.length > 0
    const next = isChanged ? scanObject(applyTextChanges(scan.bytes, changes), RESPONSE_LIMITS) : scan
    if (!guards.services) return next
    const left = isChanged ? requestTexts(next, shape).texts : texts
    return checkRequestTexts(guards.services, next, left, guards.turns)
  })
}

/**
 * Checks a request. Resolves to the request to send on, which is the same object if nothing changes. Rejects with
 * `guard_blocked`, or with `CheckCancelled`.
 */
export async function guardedRequest(guards: CallGuards, request: JsonRequest): Promise<JsonRequest> {
  const { body, dialect } = request
  const scan = await applyGuardsToScan(guards, request.scan, dialect.shape)
  if (guards.pseudonyms.bytes > 0) body.hold(guards.pseudonyms.bytes)
  if (scan === request.scan) return request
  body.hold(scan.bytes.length)
  return { dialect, body: { ...body, bytes: scan.bytes }, scan }
}

/** Runs the check of a request. Rejects with the error for the client if guards refuse the request. */
export async function refusing<Result>(guards: CallGuards, work: () => Promise<Result>): Promise<Result> {
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
  for (const found of texts) {
    const { from, to } = found
    const place = guards.screenOf(found)
    const name = place && guards.known.nameOf(place.screen, bytes.subarray(from, to), readAs(found))
    if (place && name !== undefined && guards.known.has(name)) {
      guards.record(place, [], found.isSigned, 0)
      continue
    }
    const before = guards.matches
    const change = await (mayBeFile(bytes, found)
      ? fileChange(guards, bytes, found)
      : textChange(guards, bytes, found))
    if (change) changes.push(change)
    else if (name !== undefined && guards.matches === before) guards.known.add(name)
  }
  return changes
}

async function textChange(
  guards: CallGuards,
  bytes: Buffer,
  found: FoundText,
): Promise<TextChange | undefined> {
  const text = decodeStringAt(bytes, found.from, found.to)
  const checked = await wholeText(guards, text, found)
  return checked === text ? undefined : { from: found.from, to: found.to, text: JSON.stringify(checked) }
}

// Of a file its content is checked, not its letters in base64.
async function fileChange(
  guards: CallGuards,
  bytes: Buffer,
  found: FoundText,
): Promise<TextChange | undefined> {
  const { from, to } = found
  const value = decodeStringAt(bytes, from, to)
  let next = value
  for (const read of readingsOf(value, found.kind)) {
    const reading = await guards.turns.run(read(next, found.file ?? NO_FACTS))
    if (!reading) continue
    const checked =
      read === asItStands
        ? await wholeText(guards, reading.text, found)
        : await checkedFileText(guards, reading.text, found)
    if (checked !== reading.text) next = reading.write(checked)
  }
  next = await checkedFilesWithin(guards, next, found, found.kind)
  return next === value ? undefined : { from, to, text: JSON.stringify(next) }
}

/** Maximum depth of files within files that are read. */
const MAX_DEPTH = 4

/** Checks the text of a file, and the files within it. */
export async function checkedFileText(
  guards: CallGuards,
  text: string,
  spot: TextLocation,
  depth = 1,
): Promise<string> {
  const checked = await wholeText(guards, text, { ...spot, isJson: false })
  return depth === MAX_DEPTH ? checked : checkedFilesWithin(guards, checked, spot, 'text', depth)
}

async function checkedFilesWithin(
  guards: CallGuards,
  value: string,
  spot: TextLocation,
  kind: ValueKind,
  depth = 1,
): Promise<string> {
  const changes: FileChange[] = []
  for (const file of await readFilesWithin(value, kind, guards.turns)) {
    const checked = await checkedFileText(guards, file.text, spot, depth + 1)
    if (checked !== file.text) changes.push({ ...file, written: file.write(checked) })
  }
  return changes.length === 0 ? value : withFiles(value, changes)
}

// A long text is checked in pieces, so that other calls can run in between.
async function wholeText(guards: CallGuards, text: string, spot: TextSpot): Promise<string> {
  if (text.length <= LONG_LENGTH) return guards.turns.check(() => guards.checkRequest(text, spot))
  const step = guards.requestSteps(text, spot)
  return step ? guards.turns.checkLong(text, step) : text
}

const NO_FACTS: FileFacts = { mediaType: '', name: '' }

/** Distinguishes equal values that are read in different ways. */
function readAs({ isJson, kind, file }: FoundText): string {
  if (file) return `${kind} ${file.mediaType} ${file.name}`
  return isJson ? 'json' : kind
}
