import { argumentTexts, type TextChange, textAt, withTexts } from '@sluice/wire/guarded-texts'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Pseudonyms } from '../../redaction/pseudonyms.ts'
import type { Screen } from '../../redaction/screen.ts'

/** What a screen did with a text. */
type Screened = ReturnType<Screen['apply']>

/**
 * Screens the strings in a JSON text, names of members included, each by itself. Other bytes stay as they are. A text
 * that is no object is screened as it is.
 */
export function applyToJson(screen: Screen, text: string, pseudonyms?: Pseudonyms): Screened {
  const scan = scanned(text)
  if (!scan) return screen.apply(text, pseudonyms)
  const changes: TextChange[] = []
  let counts: number[] = []
  let blockedBy: number | undefined
  for (const { from, to } of argumentTexts(scan)) {
    const value = textAt(scan.bytes, from, to)
    const screened = screen.apply(value, pseudonyms)
    counts = screened.counts.map((count, index) => count + (counts[index] ?? 0))
    blockedBy ??= screened.blockedBy
    if (screened.text !== value) changes.push({ from, to, text: JSON.stringify(screened.text) })
  }
  return {
    text: changes.length === 0 ? text : withTexts(scan.bytes, changes).toString(),
    counts,
    blockedBy,
  }
}

/** The JSON of a tool's arguments, which is screened when it is complete: agents use it only then. */
export class JsonArguments {
  readonly #screen: Screen
  #text = ''
  counts: readonly number[] = []
  blockedBy: number | undefined

  constructor(screen: Screen) {
    this.#screen = screen
  }

  push(text: string): string {
    this.#text += text
    return ''
  }

  end(): string {
    const { text, counts, blockedBy } = applyToJson(this.#screen, this.#text)
    this.counts = counts
    this.blockedBy = blockedBy
    return blockedBy === undefined ? text : ''
  }
}

function scanned(text: string): ScannedObject | undefined {
  try {
    return scanObject(Buffer.from(text), RESPONSE_LIMITS)
  } catch {
    return undefined
  }
}
